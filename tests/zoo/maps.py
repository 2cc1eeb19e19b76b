"""Networks that call `torch.vmap` and `torch.func`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import grad, vjp, vmap

from tests.zoo.entry import Awkward, Net


def mapped(body: Callable[..., Tensor]) -> Net:
    """One layer and the weights of five more."""
    return Net(body, linear=nn.Linear(8, 8), five=nn.Parameter(torch.randn(5, 8, 8)))


def activated(network: Any, x: Tensor) -> Tensor:
    return torch.tanh(network.linear(x))


def differentiated(network: Any, x: Tensor) -> Tensor:
    value, backward, *_ = vjp(lambda a: activated(network, a), x)
    return grad(lambda a: activated(network, a).sum())(x) + backward(torch.ones_like(value))[0]


MAPS = {
    "mapped": Awkward(
        "torch.vmap in forward, around an activation",
        lambda: mapped(lambda net, x: vmap(lambda row: torch.tanh(net.linear(row)))(x)),
        [],
        refused="/tanh: expected a plain call, got one inside torch.vmap",
        becomes="refused",
    ),
    "mapped over weights": Awkward(
        "torch.vmap over weights",
        lambda: mapped(lambda net, x: vmap(lambda weight: torch.tanh(x @ weight))(net.five).sum(0)),
        [],
        refused="/tanh: expected a plain call, got one inside torch.vmap",
    ),
    "mapped from outside": Awkward(
        "run by torch.vmap as a whole",
        lambda: mapped(activated),
        [],
        run=lambda network, x: vmap(network)(x),
        refused="expected a plain call of the network, got one by torch.vmap",
        becomes="refused",
    ),
    "mapped elsewhere": Awkward(
        "torch.vmap in forward, without an activation in it",
        lambda: mapped(lambda net, x: torch.tanh(vmap(net.linear)(x))),
        ["/tanh"],
        becomes="seen",
    ),
    "differentiated": Awkward(
        "torch.func.grad and torch.func.vjp in forward",
        lambda: mapped(differentiated),
        ["/tanh", "/tanh#2"],
        becomes="seen",
    ),
}
