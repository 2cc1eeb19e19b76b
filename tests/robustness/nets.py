"""Small networks that count their forward passes, so that repeated work is seen."""

from __future__ import annotations

import mmap
import threading

import torch
from torch import Tensor, nn

from fathometer.data import Inputs

_IMAGE = Inputs("image", (3, 8, 8))


class Counter:
    """A number in memory that is shared with the parent process, and so survives a kill."""

    def __init__(self) -> None:
        self._memory, self._lock = mmap.mmap(-1, 8), threading.Lock()

    def add(self) -> int:
        """Add one, and return the sum."""
        with self._lock:
            self._memory[:] = (self.value + 1).to_bytes(8, "little")
            return self.value

    @property
    def value(self) -> int:
        """The number."""
        return int.from_bytes(self._memory[:], "little")


work: Counter | None = None
"""The counter of this process, if its work is counted."""


def count_work() -> None:
    """Count a forward pass or a training segment, if work is counted."""
    if work is not None:
        work.add()


class _Counted(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        count_work()
        for layer in self:
            x = layer(x)
        return x


class _Conditional(nn.Module):
    """Has sites that depend on the data, and so on the batch."""

    def forward(self, x: Tensor) -> Tensor:
        count_work()
        for place, function in enumerate((torch.tanh, torch.relu, nn.functional.silu)):
            x = function(x) if float(x[0, 0, place, 0]) > 0.3 else x
        return torch.sigmoid(x)


def small() -> tuple[nn.Module, Inputs]:
    """Make a network with two sites."""
    return _Counted(nn.Conv2d(3, 5, 3), nn.ReLU(), nn.Conv2d(5, 4, 3), nn.SiLU()), _IMAGE


def other() -> tuple[nn.Module, Inputs]:
    """Make a network with two other sites."""
    return _Counted(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Conv2d(4, 6, 3), nn.GELU()), _IMAGE


def conditional() -> tuple[nn.Module, Inputs]:
    """Make a network with up to four sites, in an order that the data decide."""
    return _Conditional(), _IMAGE


def failing() -> nn.Module:
    """Fail, as a network that cannot be made."""
    raise ValueError("no network")
