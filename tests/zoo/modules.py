"""Modules that are put together, named or written in unusual ways."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.zoo.calls import Inner, Reused
from tests.zoo.entry import Awkward, Net


def shared() -> Net:
    """One block under two names, one weight in two layers."""
    block, tied = nn.Sequential(nn.Linear(8, 8), nn.Tanh()), nn.Linear(8, 8)
    tied.weight = block[0].weight  # type: ignore[assignment]
    return Net(lambda net, x: F.gelu(net.tied(net.two(net.one(x)))), one=block, two=block, tied=tied)


def outputs(_: Any, x: Tensor) -> dict[str, object]:
    return {"low": F.relu(x[:, :4]), "more": [(F.relu(x[:, 4:]), 1)], "name": "of a network"}


class Failing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(x)
        raise ValueError("meant")


def catching(network: Any, x: Tensor) -> Tensor:
    """Go on after a part has failed."""
    try:
        x = network.bad(x)
    except ValueError:
        x = network.good(x)
    return F.relu(x)


class Direct(nn.ReLU):
    """A `__call__` that goes past all hooks."""

    def __call__(self, x: Tensor) -> Tensor:
        return self.forward(x)


class Delegating(nn.Module):
    """What it does not have is looked up in the module that it wraps."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Reused()

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.second(self.inner(x)))


class Derived(nn.ReLU):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x - 0.1) + 0.1


def patched() -> nn.Module:
    network = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    network[1].forward = torch.tanh
    return network


class Tables(nn.Module):
    """Gates and tables of weights alone, as matrices; data that are written into one count."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(8))
        self.register_buffer("table", torch.randn(8, 8))
        self.mlp = nn.Sequential(nn.Linear(8, 8), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        bias = self.mlp(self.table) + torch.sigmoid(self.gate.view(1, -1) + torch.arange(8))
        held = torch.zeros(len(x), 8)
        held[:, :4] = x[:, :4]
        return torch.tanh(held) + bias.mean(0) + torch.relu(x)


def gated() -> Net:
    """A learned gate is no activation of data, nor is a number."""
    return Net(
        lambda net, x: F.relu(x) * torch.sigmoid(net.gate) * torch.tanh(x.mean()),
        gate=nn.Parameter(torch.zeros(8)),
    )


def add_noise(_: Net, x: Tensor) -> Tensor:
    """Noise is data, too, also in memory that was there before."""
    return x + torch.tanh(torch.randn(len(x), 8)) + torch.relu(torch.empty(len(x), 8).normal_())


MODULES = {
    "shared": Awkward("one block under two names, tied weights", shared, ["one.1", "one.1#2", "/gelu"]),
    "outputs": Awkward("nested outputs", lambda: Net(outputs), ["/relu", "/relu#2"]),
    "catching": Awkward(
        "goes on after a part has raised an exception",
        lambda: Net(catching, bad=Failing(), good=Inner()),
        ["bad/tanh", "good/relu", "good/silu", "good/sigmoid", "/relu"],
        trains=False,
    ),
    "selfmade": Awkward(
        "a module made in forward",
        lambda: Net(lambda _, x: nn.ReLU()(x)),
        ["/relu"],
        becomes="goes by the module around it: `/relu`",
    ),
    "direct": Awkward(
        "a `__call__` of its own, past all hooks",
        lambda: nn.Sequential(Direct()),
        ["/relu"],
        becomes="goes by the module around it: `/relu`",
    ),
    "delegating": Awkward(
        "a __getattr__ of its own", Delegating, ["inner.act", "inner.act#2", "inner.act#3"]
    ),
    "derived": Awkward("a subclass of nn.ReLU", lambda: nn.Sequential(Derived()), ["0/relu"]),
    "patched": Awkward("a forward that was replaced", patched, ["1"]),
    "lazy": Awkward(
        "shaped by its first input",
        lambda: nn.Sequential(nn.LazyLinear(8), nn.LazyBatchNorm1d(), nn.ReLU()),
        ["2"],
        becomes="seen, also in the first pass",
    ),
    "gated": Awkward("a gate of weights, and one number for all", gated, ["/relu"], becomes="no site"),
    "tables": Awkward(
        "tables of weights alone, and one filled with data",
        Tables,
        ["/tanh", "/relu"],
        inputs=(8, 8),
        becomes="only the latter is a site",
    ),
    "per sample": Awkward(
        "one number for each sample",
        lambda: Net(lambda _, x: x * torch.sigmoid(x.mean(1))[:, None]),
        ["/sigmoid"],
    ),
    "noisy": Awkward(
        "noise", lambda: Net(add_noise), ["/tanh", "/relu"], trains=False, becomes="a site, as data are"
    ),
}
