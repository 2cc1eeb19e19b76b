"""The pairs of a site, collected over forward passes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fathometer.errors import InputError


class Pair(NamedTuple):
    """Inputs and outputs of a site, `[samples, features]` each; only whole modules may change the width."""

    x: Tensor
    y: Tensor


class Growing:
    """As many samples as come, or the first `capacity`; they may be part of a graph."""

    def __init__(self, capacity: int | None = None) -> None:
        self._capacity = capacity
        self._parts: list[Pair] = []

    def add(self, part: Pair) -> None:
        """Samples of one more pass, as far as there is room."""
        if self._capacity is not None:
            room = self._capacity - len(self)
            part = Pair(part.x[:room], part.y[:room])
        if len(part.x):
            self._parts.append(part)

    @property
    def pair(self) -> Pair:
        """All of them."""
        return Pair(torch.cat([part.x for part in self._parts]), torch.cat([part.y for part in self._parts]))

    def clear(self) -> None:
        """Begin anew."""
        self._parts.clear()

    def __len__(self) -> int:
        return sum(len(part.x) for part in self._parts)


class Bounded:
    """The first `capacity` samples, in memory that is taken once.

    Small tensors that outlive a pass, laid between the large ones that do not, would keep an allocator from
    giving back memory: 1.9 GB instead of .15 for 512 samples of a ResNet-50 on a CPU.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._filled = 0
        self._memory: Pair | None = None

    def add(self, part: Pair) -> None:
        """Samples of one more pass, as far as there is room."""
        if self._memory is None or (not self._filled and _widths(self._memory) != _widths(part)):
            self._memory = Pair(*(side.new_empty(self._capacity, side.shape[1]) for side in part))
        for before, now in zip(_widths(self._memory), _widths(part), strict=True):
            if before != now:
                raise InputError(f"its width changed from {before} to {now}")
        count = min(part.x.shape[0], self._capacity - self._filled)
        for memory, side in zip(self._memory, part, strict=True):
            memory[self._filled : self._filled + count] = side[:count]
        self._filled += count

    @property
    def pair(self) -> Pair:
        """Those that came; a view, until the next pass after `clear`."""
        assert self._memory is not None
        return Pair(self._memory.x[: self._filled], self._memory.y[: self._filled])

    def clear(self) -> None:
        """Begin anew, in the same memory."""
        self._filled = 0

    def __len__(self) -> int:
        return self._filled


def _widths(pair: Pair) -> tuple[int, int]:
    return pair.x.shape[1], pair.y.shape[1]
