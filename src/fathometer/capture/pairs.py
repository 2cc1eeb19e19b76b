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

    def laid(self, part: Pair) -> Pair:
        """The same, where they are."""
        return part

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

    @torch.inference_mode(False)  # a pass in inference mode may be followed by one that is not
    @torch.no_grad()
    def laid(self, part: Pair) -> Pair:
        """A copy in that memory, as far as there is room, that counts once it is added."""
        if self._memory is None or (not self._filled and _widths(self._memory) != _widths(part)):
            self._memory = Pair(*(side.new_empty(self._capacity, side.shape[1]) for side in part))
        if _widths(self._memory) != _widths(part):
            return part  # which cannot be added
        rows = slice(self._filled, min(self._filled + len(part.x), self._capacity))
        copy = Pair(*(memory[rows] for memory in self._memory))
        for here, side in zip(copy, part, strict=True):
            here.copy_(side[: len(here)])
        return copy

    def add(self, part: Pair) -> None:
        """Samples of one more pass, as far as there is room."""
        part = self.laid(part)
        assert self._memory is not None
        for before, now in zip(_widths(self._memory), _widths(part), strict=True):
            if before != now:
                raise InputError(f"its width changed from {before} to {now}")
        self._filled += len(part.x)

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
