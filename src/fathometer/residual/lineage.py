"""Which tensors contain the input of a module as a summand.

`x + f(x)` does; so does what reshaping, dropout, scaling, normalisation or an activation makes of it. A
linear map, a convolution or an attention makes something else: there the trail ends.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from torch import Tensor

from fathometer.capture import OPERATORS
from fathometer.capture.axes import Traces, tensors_in

_SUMS = frozenset("add sub __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__".split())
_SCALINGS = frozenset("mul div __mul__ __rmul__ __imul__ __truediv__ __itruediv__".split())
_TRANSPARENT = OPERATORS | frozenset(
    "view reshape view_as reshape_as flatten unflatten permute transpose movedim swapaxes T mT squeeze "
    "unsqueeze contiguous clone detach data to type type_as float double half bfloat16 roll "
    "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout "
    "layer_norm rms_norm batch_norm group_norm instance_norm".split()
)


class Sum(IntEnum):
    """Whether a call's output contains its input as a summand."""

    NONE = 0
    WITHIN = 1  # a part of the module adds it
    OWN = 2  # the module's own `forward` does


class Lineage:
    """Of every tensor: the calls whose input it contains, and whether something was added to that."""

    def __init__(self, traces: Traces) -> None:
        self._traces = traces
        self._open: set[int] = set()  # calls that have begun and not ended
        self._known: dict[int, tuple[weakref.ref[Tensor], dict[int, Sum]]] = {}

    def begin(self, call: int, given: Tensor) -> None:
        """A call starts, with `given` as its input."""
        self._open.add(call)
        self._keep(given, {**self.of(given), call: Sum.NONE})

    def end(self, call: int, result: Tensor | None) -> Sum:
        """A call ends: does `result` contain its input?"""
        found = Sum.NONE if result is None else self.of(result).get(call, Sum.NONE)
        self._open.discard(call)
        return found

    def of(self, tensor: Tensor) -> dict[int, Sum]:
        """The open calls whose input a tensor contains."""
        reference, calls = self._known.get(id(tensor), (None, {}))
        if reference is None or reference() is not tensor:
            return {}
        return {call: how for call, how in calls.items() if call in self._open}

    def note(
        self, operator: str, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any, within: int
    ) -> None:
        """Learn from a call of a torch function, made by the module call `within`."""
        if operator == "__setitem__":
            self._known.pop(id(args[0]), None)
        if not isinstance(output, Tensor):
            return
        sources = list(tensors_in((args, kwargs)))
        calls: dict[int, Sum] = {}
        if operator in _SUMS:
            calls = self._summed(sources, output, within)
        elif operator in _SCALINGS:  # by a number, or what is spread out: weights, a norm
            full = [source for source in sources if source.shape == output.shape]
            calls = self.of(full[0]) if len(full) == 1 else {}
        elif operator in _TRANSPARENT and sources:
            calls = self.of(sources[0])
        self._keep(output, calls)

    def _summed(self, sources: Sequence[Tensor], output: Tensor, within: int) -> dict[int, Sum]:
        full = [s for s in sources if s.shape == output.shape and not self._traces.of(s).constant]
        if len(full) < 2:  # a bias, or positions
            return self.of(full[0]) if full else {}
        first, second = self.of(full[0]), self.of(full[1])
        calls = {}
        for call in first.keys() | second.keys():
            known = max(first.get(call, Sum.NONE), second.get(call, Sum.NONE))
            alone = known is Sum.NONE and call in first and call in second  # x + x, x + relu(x)
            calls[call] = known if alone else max(known, Sum.OWN if call == within else Sum.WITHIN)
        return calls

    def _keep(self, tensor: Tensor, calls: dict[int, Sum]) -> None:
        if calls:
            self._known[id(tensor)] = weakref.ref(tensor), calls
        else:
            self._known.pop(id(tensor), None)
