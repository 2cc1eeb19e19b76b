"""Tensors inside `torch.vmap` and `torch.func.grad`, which wrap them: one row stands for all.

`vmap` takes an axis away; which one, and whether it is that of the samples, is known when it begins. Put back
where it was, it makes of the tensor what a network without `vmap` would have there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from torch import Tensor
from torch._C import _functorch

from fathometer.capture.traces import Facts, default_axis


class Level(NamedTuple):
    """One `vmap` at work."""

    place: int | None = None  # of the axis that it took from the data; none if it runs over weights alone
    samples: bool = False  # that axis is the samples'
    rows: int = 1  # of a sample on it
    channels: bool = False  # that axis is known to be the channels'


class Plain(NamedTuple):
    """A tensor with all of its axes, that of its channels, and how many rows a sample has."""

    tensor: Tensor
    axis: int
    rows: int = 1


class Maps:
    """The `vmap`s of a thread, by level; `sample_axis` as in a `Reduction`."""

    def __init__(self, sample_axis: int = 0) -> None:
        self._sample_axis = sample_axis
        self._levels: dict[int, Level] = {}

    def begin(self, level: int, mapped: Sequence[tuple[Tensor, int, Facts]], samples: int) -> None:
        """A `vmap` begins: what it runs over, on which axis; `samples` were given to the network."""
        data = [entry for entry in mapped if not entry[2].constant]
        found = Level(data[0][1], channels=data[0][2].axis == data[0][1]) if data else Level()
        for i, (tensor, axis, facts) in enumerate(data):
            alike = tensor.shape[axis] == samples * facts.rows
            if axis == self._samples_of(tensor) and (i == 0 or alike):
                found = Level(axis, samples=True, rows=facts.rows)
                break
        self._levels[level] = found

    def settle(self, tensor: Tensor) -> None:
        """The network begins, on that input: what is mapped without it are weights."""
        chain = {level for level, _ in _unwrapped(tensor)[0]}
        self._levels = {k: v if k in chain else Level() for k, v in self._levels.items()}

    def plain(self, tensor: Tensor, facts: Facts, samples: int) -> Plain | None:
        """The tensor beneath, with the axes that were taken away where they were.

        Axes that run over weights alone come after the samples'. None if it cannot be told which axis that
        is: it is not as long as there are `samples`, and another one is.
        """
        chain, beneath = _unwrapped(tensor)
        rest = list(range(beneath.ndim))
        taken = [rest.pop(axis) for _, axis in reversed(chain)][::-1]
        own = list(rest)
        levels = [
            (self._levels.get(level, Level(0)), axis) for (level, _), axis in zip(chain, taken, strict=True)
        ]
        for level, axis in levels:  # from the innermost outwards, as they were taken last to first
            if level.place is not None:
                rest.insert(level.place, axis)
        if not rest:
            return None
        place = self._sample_axis % len(rest) if self._sample_axis < len(rest) else 0
        mapped = [(axis, level.rows) for level, axis in reversed(levels) if level.samples]
        if mapped:
            first, rows = next((m for m in mapped if beneath.shape[m[0]] == samples * m[1]), mapped[0])
        elif rest[place] in own:
            first, rows = rest[place], facts.rows
        else:
            return None
        if beneath.shape[first] not in (samples, samples * rows):
            others = [*taken, *own[:1]]
            if any(beneath.shape[axis] == samples for axis in others if axis != first):
                return None
        channels = next((axis for level, axis in levels if level.channels), None)
        if facts.axis is not None and facts.axis < len(own):
            channels = own[facts.axis]
        rest.remove(first)
        rest.insert(place, first)
        channels = None if channels == first else channels
        if channels is None and len(rest) > 1:
            channels = rest[default_axis(len(rest))]
        for level, axis in levels:
            if level.place is None:
                rest.insert(place + 1 if self._sample_axis >= 0 else 0, axis)
        axis = default_axis(len(rest)) if channels is None else rest.index(channels)
        return Plain(beneath.permute(rest), axis, rows)

    def _samples_of(self, tensor: Tensor) -> int | None:
        """On which axis a tensor has its samples, if no `vmap` has taken that."""
        levels = [self._levels.get(level, Level(0)) for level, _ in _unwrapped(tensor)[0]]
        if any(level.samples for level in levels):
            return None
        if self._sample_axis < 0:
            return self._sample_axis % tensor.ndim
        return self._sample_axis - sum(
            level.place is not None and level.place < self._sample_axis for level in levels
        )


def is_wrapped(tensor: Tensor) -> bool:
    """Whether a transform of `torch.func` is at work on it."""
    return bool(_functorch.is_functorch_wrapped_tensor(tensor))


def _unwrapped(tensor: Tensor) -> tuple[list[tuple[int, int]], Tensor]:
    """The `vmap`s around a tensor, from within: level and axis; and the tensor that holds the numbers."""
    chain = []
    while is_wrapped(tensor):
        axis = _functorch.maybe_get_bdim(tensor)  # among those that the transforms below have left
        if axis >= 0:
            chain.append((_functorch.maybe_get_level(tensor), axis))
        tensor = _functorch.get_unwrapped(tensor)
    return chain, tensor


def outside() -> AbstractContextManager[Any]:
    """Inside, operators are computed as they are, whatever transform is under way."""
    if _functorch.peek_interpreter_stack() is None:
        return nullcontext()
    from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

    return temporarily_clear_interpreter_stack()
