"""Activations that are called in unusual ways."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.zoo.entry import Awkward, Net


class Functional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(x)
        x = torch.relu(x - 0.1)
        x = (x - 0.1).relu()
        x = self.inner(x - 0.1)
        x = torch.tanh(x)
        F.leaky_relu_(x, 0.2)
        return torch.sigmoid(input=x)


class Inner(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = x * 1.0
        x.relu_()
        F.silu(x, inplace=True)
        torch.sigmoid_(x)
        return F.softmax(x, -1)


class Everything(nn.Module):
    """Every activation that torch has as a module, once."""

    def __init__(self) -> None:
        super().__init__()
        self.all = nn.ModuleList(
            kind()
            for kind in (
                *(nn.CELU, nn.ELU, nn.GELU, nn.Hardshrink, nn.Hardsigmoid, nn.Hardswish, nn.Hardtanh),
                *(nn.LeakyReLU, nn.LogSigmoid, nn.Mish, nn.PReLU, nn.ReLU, nn.ReLU6, nn.RReLU, nn.SELU),
                *(nn.SiLU, nn.Sigmoid, nn.Softplus, nn.Softshrink, nn.Softsign, nn.Tanh, nn.Tanhshrink),
            )
        )
        self.all.append(nn.Threshold(0.1, 0.0))
        self.all.append(nn.Softmax(-1))  # which is none: it mixes

    def forward(self, x: Tensor) -> Tensor:
        for activation in self.all:
            x = x + activation(x)
        return x


class Reused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.act = nn.Linear(8, 8), nn.Linear(8, 8), nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.first(x))
        return x + self.act(self.second(x))


def in_place() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8), nn.SiLU(inplace=True), nn.Linear(8, 8), nn.Hardswish(inplace=True))


class Swish(nn.Module):
    """Written by a user: x σ(x), and a call within a call."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(x)


def tanh_and_relu(x: Tensor, *, slope: float = 0.5) -> Tensor:
    return torch.tanh(x) + slope * torch.relu(x)


def composite() -> Net:
    def body(net: Any, x: Tensor) -> Tensor:
        return tanh_and_relu(net.act(net.linear(x))) + tanh_and_relu(x, slope=0.1)

    return Net(body, linear=nn.Linear(8, 8), act=Swish())


def holding(act: Callable[[Tensor], Tensor]) -> Net:
    """A network whose activation is no module."""
    return Net(lambda net, x: act(net.linear(x)), linear=nn.Linear(8, 8))


def looped() -> Net:
    def body(net: Any, x: Tensor) -> Tensor:
        for i, layer in enumerate(net.layers):
            x = net.acts["odd" if i % 2 else "even"](layer(x))
        return x

    layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
    return Net(body, layers=layers, acts=nn.ModuleDict({"odd": nn.Tanh(), "even": nn.ELU()}))


class Recursive(nn.Module):
    """Calls itself, as a whole."""

    def forward(self, x: Tensor, depth: int = 2) -> Tensor:
        return torch.relu(x if depth == 0 else self(x - 0.1, depth - 1))


class Conditional(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x) if x.sum() > 0 else torch.tanh(x)


class Custom(torch.autograd.Function):
    """With a derivative of its own."""

    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:  # noqa: ARG004
        return torch.relu(x)

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:  # noqa: ARG004
        return gradient


def into_memory(x: Tensor) -> Tensor:
    with torch.no_grad():  # torch gives no gradient through `out=`
        return torch.sigmoid(x, out=torch.empty_like(x))


def below(x: Tensor) -> Tensor:
    gelu: Tensor = torch.ops.aten.gelu.default(torch.ops.aten.tanh(x))
    return gelu


CALLS = {
    "functional": Awkward(
        "functions, methods and keywords, in place or not",
        Functional,
        [
            *["/relu", "/relu#2", "/relu#3", "inner/relu", "inner/silu", "inner/sigmoid"],
            *["/tanh", "/leaky_relu", "/sigmoid"],
        ],
        trains=False,
    ),
    "everything": Awkward("every activation of torch.nn", Everything, [f"all.{i}" for i in range(23)]),
    "reused": Awkward("one activation, called twice", Reused, ["act", "act#2"]),
    "in place": Awkward("the input is overwritten", in_place, ["1", "3"]),
    "composite, unnamed": Awkward(
        "an activation made of several functions",
        composite,
        ["act/sigmoid", "/tanh", "/relu", "/tanh#2", "/relu#2"],
        becomes="these are seen, or the whole if `activations` names it",
    ),
    "partial": Awkward(
        "functools.partial", lambda: holding(partial(F.leaky_relu, negative_slope=0.3)), ["/leaky_relu"]
    ),
    "operator": Awkward(
        "torch.ops.aten, as exported graphs call it", lambda: holding(below), ["/tanh", "/gelu"]
    ),
    "out": Awkward(
        "written into memory of one's own (out=)", lambda: holding(into_memory), ["/sigmoid"], trains=False
    ),
    "autograd function": Awkward("inside torch.autograd.Function", lambda: holding(Custom.apply), ["/relu"]),
    "looped": Awkward("ModuleList and ModuleDict", looped, ["acts.even", "acts.odd", "acts.even#2"]),
    "recursive": Awkward(
        "the network calls itself",
        Recursive,
        ["/relu", "/relu#2", "/relu#3"],
        becomes="each round is a call of its own",
    ),
    "activation alone": Awkward("the network is an activation", nn.Tanh, ["tanh"]),
}
