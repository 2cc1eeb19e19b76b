"""Networks for plans, by name.

With LOG set, every forward pass leaves a line in that file, and with LOADS every network that is made.
"""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from fathometer.data import Inputs

IMAGE = Inputs("image", (3, 8, 8))


class Noted(nn.Sequential):
    """Leaves a line for each forward pass."""

    def __init__(self, name: str, *layers: nn.Module) -> None:
        super().__init__(*layers)
        self.name = name
        if loads := os.environ.get("LOADS"):
            with open(loads, "a") as file:
                file.write(f"{name}\n")

    def forward(self, x: Tensor) -> Tensor:
        if log := os.environ.get("LOG"):
            with open(log, "a") as file:
                file.write(f"{self.name} {len(x)}\n")
        for layer in self:
            x = layer(x)
        return x


def small() -> tuple[nn.Module, Inputs]:
    return Noted("small", nn.Conv2d(3, 5, 3), nn.ReLU(), nn.Conv2d(5, 4, 3), nn.SiLU()), IMAGE


def other() -> tuple[nn.Module, Inputs]:
    return Noted("other", nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Conv2d(4, 6, 3), nn.GELU()), IMAGE


def bad() -> tuple[nn.Module, Inputs]:
    return nn.Conv2d(4, 4, 3), IMAGE


class Mood(nn.Module):
    """Its sites depend on the data, so that the first batch may not have all of them."""

    def forward(self, x: Tensor) -> Tensor:
        for i, function in enumerate((torch.tanh, torch.relu, nn.functional.silu)):
            x = function(x) if float(x[0, 0, i, 0]) > 0.3 else x
        return torch.sigmoid(x)


def moody() -> tuple[nn.Module, Inputs]:
    return Mood(), IMAGE


class Deadly(Noted):
    """Kills its process in one pass only: its fourth, or that of DEADLY_PASS."""

    def forward(self, x: Tensor) -> Tensor:
        mark = Path(os.environ["DEADLY"])
        with mark.open("a") as file:
            file.write(".")
        if len(mark.read_text()) == int(os.environ.get("DEADLY_PASS", "4")):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(x)


def deadly() -> tuple[nn.Module, Inputs]:
    return Deadly("deadly", nn.ReLU()), IMAGE


class Rude(nn.Module):
    """Changes its input in place, draws random numbers, and leaves its own training mode on."""

    def forward(self, x: Tensor) -> Tensor:
        x.clamp_(min=-0.5).add_(torch.rand(x.shape))
        self.train()
        return torch.tanh(nn.functional.dropout(torch.relu(x), 0.5, self.training))


def rude() -> tuple[nn.Module, Inputs]:
    return Rude(), IMAGE


def gap(x: Tensor, y: Tensor) -> Tensor:
    return (x - y).abs().max()


class Slow(Noted):
    """Takes its time on the nodes of a cluster.

    With GATE set, it waits as long as that file exists; with STALL=5 it stops for a minute in its fifth pass.
    """

    def forward(self, x: Tensor) -> Tensor:
        gate, stall = os.environ.get("GATE"), os.environ.get("STALL")
        while gate and Path(gate).exists():
            time.sleep(0.02)
        x = super().forward(x)
        if stall and len(Path(os.environ["LOG"]).read_text().splitlines()) >= int(stall):
            time.sleep(60)
        return x


def slow() -> tuple[nn.Module, Inputs]:
    return Slow("slow", nn.Conv2d(3, 5, 3), nn.ReLU()), IMAGE


def by_process() -> tuple[nn.Module, Inputs]:
    """Notes in which process it runs."""
    return Noted(f"process {os.getpid()}", nn.Conv2d(3, 5, 3), nn.ReLU()), IMAGE


def _numbered(width: int) -> tuple[nn.Module, Inputs]:
    return Slow(f"net{width}", nn.Conv2d(3, width, 3), nn.ReLU()), IMAGE


EIGHT = [f"net{width}" for width in range(2, 10)]
globals().update({name: partial(_numbered, int(name[3:])) for name in EIGHT})


class Fatal(nn.Module):
    """Kills its process whenever it sees a batch of 3."""

    def forward(self, x: Tensor) -> Tensor:
        if len(x) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.relu(x)


def fatal() -> tuple[nn.Module, Inputs]:
    return Fatal(), IMAGE


class Changing(nn.Module):
    """Changes a buffer in every pass, which no network should do in eval mode."""

    seen: Tensor

    def __init__(self, persistent: bool = True) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()), persistent)

    def forward(self, x: Tensor) -> Tensor:
        self.seen += 1
        return torch.relu(x + self.seen)


def changing() -> tuple[nn.Module, Inputs]:
    return Changing(), IMAGE


def unsaved() -> tuple[nn.Module, Inputs]:
    return Changing(persistent=False), IMAGE


class Counting(nn.Module):
    """Counts its passes in an attribute, on which its values depend."""

    count = 0

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return torch.relu(x + self.count)


def counting() -> tuple[nn.Module, Inputs]:
    return Counting(), IMAGE


class Listed(nn.Module):
    """Takes a list of images, as detectors do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = small()[0]

    def forward(self, images: list[Tensor]) -> list[Tensor]:
        return list(self.inner(torch.stack(images)))


def listed() -> tuple[nn.Module, Inputs]:
    return Listed(), IMAGE


def as_list(model: nn.Module, item: Tensor) -> object:
    return model(list(item))
