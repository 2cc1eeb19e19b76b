"""Awkward networks, each with the sites that it must show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Awkward:
    build: Callable[[], nn.Module]
    sites: list[str]
    inputs: tuple[int, ...] = (6, 8)
    dtype: torch.dtype = torch.float32


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


class Reused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.act = nn.Linear(8, 8), nn.Linear(8, 8), nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.first(x))
        return x + self.act(self.second(x))


class InPlace(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(8, 8), nn.SiLU(inplace=True), nn.Linear(8, 8), nn.Hardswish(inplace=True))


class Swish(nn.Module):
    """Written by a user: x σ(x), and a call within a call."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(x)


def tanh_and_relu(x: Tensor, *, slope: float = 0.5) -> Tensor:
    return torch.tanh(x) + slope * torch.relu(x)


class Composite(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.act, self.other = nn.Linear(8, 8), Swish(), tanh_and_relu

    def forward(self, x: Tensor) -> Tensor:
        return tanh_and_relu(self.act(self.linear(x))) + self.other(x, slope=0.1)


class Shared(nn.Module):
    """One block under two names, one weight in two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
        self.two = self.one
        self.tied = nn.Linear(8, 8)
        self.tied.weight = self.one[0].weight  # type: ignore[assignment]

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(self.tied(self.two(self.one(x))))


class Outputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.split = Split()

    def forward(self, x: Tensor) -> dict[str, object]:
        low, (high, _) = self.split(x)
        return {"low": F.relu(low), "more": [F.relu(high)], "name": "of a network"}


class Split(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, tuple[Tensor, int]]:
        return x[:, :4].tanh(), (x[:, 4:].tanh(), 1)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        state = torch.zeros_like(x)
        for _ in range(3):
            state = torch.tanh(self.cell(state) + x)
        return state


class Conditional(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x) if x.sum() > 0 else torch.tanh(x)


class Gated(nn.Module):
    """A learned gate is no activation of data, nor is a number."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(8))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x) * torch.sigmoid(self.gate) * torch.tanh(x.mean())


class Catching(nn.Module):
    """Goes on after a part has failed."""

    def __init__(self) -> None:
        super().__init__()
        self.bad, self.good = Failing(), Inner()

    def forward(self, x: Tensor) -> Tensor:
        try:
            x = self.bad(x)
        except ValueError:
            x = self.good(x)
        return F.relu(x)


class Failing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(x)
        raise ValueError("meant")


class Selfmade(nn.Module):
    """Makes a module while it runs."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.ReLU()(x)


def transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


ZOO = {
    "functional": Awkward(
        Functional,
        [
            *["/relu", "/relu#2", "/relu#3", "inner/relu", "inner/silu", "inner/sigmoid"],
            *["/tanh", "/leaky_relu", "/sigmoid"],
        ],
    ),
    "reused": Awkward(Reused, ["act", "act#2"]),
    "in place": Awkward(InPlace, ["1", "3"]),
    "composite, unnamed": Awkward(Composite, ["act/sigmoid", "/tanh", "/relu", "/tanh#2", "/relu#2"]),
    "shared": Awkward(Shared, ["one.1", "one.1#2", "/gelu"]),
    "outputs": Awkward(Outputs, ["split/tanh", "split/tanh#2", "/relu", "/relu#2"]),
    "recurrent": Awkward(Recurrent, ["/tanh", "/tanh#2", "/tanh#3"]),
    "gated": Awkward(Gated, ["/relu"]),
    "catching": Awkward(
        Catching, ["bad/tanh", "good/relu", "good/silu", "good/sigmoid", "/relu"]
    ),
    "selfmade": Awkward(Selfmade, ["/relu"]),
    "bf16": Awkward(Reused, ["act", "act#2"], dtype=torch.bfloat16),
    "fp16": Awkward(InPlace, ["1", "3"], dtype=torch.float16),
    "double": Awkward(Functional, [], dtype=torch.float64),
    "activation alone": Awkward(nn.Tanh, ["tanh"]),
    "fused transformer": Awkward(transformer, ["layers.0/gelu", "layers.1/gelu"], inputs=(6, 5, 8)),
    "fused layer": Awkward(
        lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), ["/relu"], inputs=(6, 5, 8)
    ),
    "lstm": Awkward(lambda: nn.LSTM(8, 8), [], inputs=(6, 5, 8)),  # one kernel: nothing to see
}  # fmt: skip
