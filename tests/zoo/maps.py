"""Networks that call `torch.vmap` and `torch.func`, each beside a plain one whose pairs must be the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import grad, jacrev
from torch.func import vmap as map_over

from tests.zoo.entry import Awkward

Body: TypeAlias = "Callable[[Mapped, Tensor], Tensor]"


class Mapped(nn.Module):
    """A layer, weights of five more and of a convolution; what is done with them is given."""

    def __init__(self, body: Body) -> None:
        super().__init__()
        self.linear, self.body = nn.Linear(8, 8), body
        self.five = nn.Parameter(torch.randn(5, 8, 8))
        self.kernel = nn.Parameter(torch.randn(8, 3, 2, 2))
        self.table = [torch.randn(5, 8, 8)]  # which torch does not know to be weights

    def forward(self, x: Tensor) -> Tensor:
        return self.body(self, x)


def entry(what: str, body: Body, plain: Body, sites: list[str] | None = None, **rest: Any) -> Awkward:
    return Awkward(what, lambda: Mapped(body), sites or ["/tanh"], plain=lambda: Mapped(plain), **rest)


def bent(network: Mapped, x: Tensor) -> Tensor:
    return torch.tanh(network.linear(x))


def bent_on(axis: int) -> Body:
    return lambda network, x: map_over(torch.tanh, in_dims=axis, out_dims=axis)(network.linear(x))


def bent_on_all(network: Mapped, x: Tensor) -> Tensor:
    """Over the third axis, the samples, the second; the function sees one number for each feature."""
    inner = map_over(lambda row: torch.tanh(network.linear(row)))
    return map_over(map_over(inner), in_dims=2, out_dims=2)(x)


def in_parts(network: Mapped, x: Tensor) -> Tensor:
    return torch.cat([bent(network, part) for part in x.split(4)])


def curved(network: Mapped, x: Tensor) -> Tensor:
    def one(row: Tensor) -> Tensor:
        return torch.tanh(network.linear(row))

    return map_over(grad(lambda row: one(row).sum()))(x) + map_over(jacrev(one))(x).sum(-1)


def bent_twice(network: Mapped, x: Tensor) -> Tensor:
    return bent(network, x) + bent(network, x)


def fivefold(network: Mapped, x: Tensor) -> Tensor:
    """One network for each of five weights."""
    return map_over(lambda weight: torch.tanh(x @ weight))(network.five).sum(0)


def fivefold_plainly(network: Mapped, x: Tensor) -> Tensor:
    return torch.tanh(torch.einsum("nd,edk->nek", x, network.five)).sum(1)


MAPS = {
    "mapped": entry(
        "torch.vmap in forward",
        lambda net, x: map_over(lambda row: torch.tanh(net.linear(row)))(x),
        bent,
        becomes="seen as if the function were called on the whole tensor",
    ),
    "mapped over features": entry("torch.vmap over features", bent_on(1), bent),
    "mapped over features, as many as samples": entry(
        "torch.vmap over features, as many as samples", bent_on(1), bent, inputs=(8, 8)
    ),
    "mapped over samples, as many as features": entry(
        "torch.vmap over samples, as many as features", bent_on(0), bent, inputs=(8, 8)
    ),
    "mapped over positions": entry("torch.vmap over positions", bent_on(1), bent, inputs=(6, 5, 8)),
    "mapped over channels": entry("torch.vmap over channels", bent_on(3), bent, inputs=(6, 4, 5, 8)),
    "mapped over all": entry("torch.vmap in torch.vmap", bent_on_all, bent, inputs=(6, 4, 5, 8)),
    "mapped in part": entry(
        "torch.vmap with in_dims=None for some",
        lambda net, x: map_over(lambda a, b, c: torch.tanh(a @ b + c), (0, None, 1))(x, net.five[0], x.T),
        lambda net, x: torch.tanh(x @ net.five[0] + x),
    ),
    "mapped over weights": entry(
        "torch.vmap over weights",
        fivefold,
        fivefold_plainly,
        becomes="seen; an axis of weights is one of positions, over which the mean is taken",
    ),
    "mapped over other weights": entry(
        "torch.vmap over what might be samples, but is not as many",
        lambda net, x: torch.relu(x) + map_over(lambda w: torch.tanh(x @ w))(net.table[0]).sum(0),
        lambda net, x: torch.relu(x) + net.table[0].sum(),
        ["/relu"],
        hidden=1,
        becomes="passed over where it cannot be told on which axis the samples are",
    ),
    "mapped and summed": entry(
        "torch.vmap over features, of sums over samples",
        lambda _, x: torch.relu(x) + map_over(lambda f: torch.tanh(f.sum()), in_dims=1)(x),
        lambda _, x: torch.relu(x) + x.sum(0),
        ["/relu"],
    ),
    "mapped in chunks": entry(
        "torch.vmap in chunks",
        lambda net, x: map_over(lambda row: torch.tanh(net.linear(row)), chunk_size=4)(x),
        in_parts,
        ["/tanh", "/tanh#2"],
        becomes="each chunk is a call of its own, of some of the samples",
    ),
    "mapped convolution": entry(
        "torch.vmap of a convolution",
        lambda net, x: map_over(lambda image: torch.tanh(F.conv2d(image, net.kernel)))(x),
        lambda net, x: torch.tanh(F.conv2d(x, net.kernel)),
        inputs=(6, 3, 5, 5),
    ),
    "mapped video": entry(
        "torch.vmap over frames",
        lambda net, x: map_over(lambda f: torch.tanh(F.conv2d(f, net.kernel)), in_dims=1, out_dims=1)(x),
        lambda net, x: torch.tanh(F.conv2d(x.flatten(0, 1), net.kernel)),
        inputs=(6, 4, 3, 5, 5),
    ),
    "mapped from outside": entry(
        "run by torch.vmap as a whole", bent, bent, run=lambda network, x: map_over(network)(x)
    ),
    "differentiated": entry(
        "torch.func.grad and torch.func.jacrev in forward", curved, bent_twice, ["/tanh", "/tanh#2"]
    ),
}
