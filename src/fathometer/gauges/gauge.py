"""The record of a gauge, and the samples that gauges take."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor

from fathometer.transport.arrays import Array, as_pair, exceeds_rounding, largest_entry, resolution
from fathometer.transport.moments import centre

GaugeValue: TypeAlias = "float | Tensor | Mapping[str, float | Tensor]"
GaugeFunction: TypeAlias = "Callable[[Tensor, Tensor], GaugeValue]"
"""A function of X and Y, `[samples, features]` each, that gives a number, or several with a name each."""

Bound: TypeAlias = "float | Callable[[float, float], float]"
"""A number, or a function of n and d."""

Range: TypeAlias = "tuple[Bound, Bound]"
"""The smallest and the largest value."""

_ROUNDING = 1e-6  # by which a value may miss its range


class Samples:
    """One side of a pair, or of a batch of pairs, with what several gauges need, computed on first use.

    Attributes:
        values: `[samples, features]` or `[batch, samples, features]`, float64.
        resolution: the relative spacing of the numbers that they were computed in.
        name: what errors call them, `x` or `y`.
    """

    def __init__(self, values: Tensor, resolution: float, name: str) -> None:
        self.values, self.resolution, self.name = values, resolution, name

    @property
    def items(self) -> Tensor:
        """The values as a batch, `[items, n, d]`, also of a single pair."""
        return self.values.reshape(-1, *self.values.shape[-2:])

    @cached_property
    def centred(self) -> tuple[Tensor, Tensor]:
        """The samples minus their means, `[items, n, d]`, and whether each item varies beyond rounding."""
        mean, rows = centre(self.items)
        largest_entry(rows, self.name)
        return rows, exceeds_rounding(mean, rows, self.resolution)

    def each(self, values: Tensor) -> Tensor:
        """Return `[items]` values as they are for a batch, as a single number for a single pair."""
        return values if self.values.ndim == 3 else values[0]


def prepare(
    x: Array | Samples,
    y: Array | Samples,
    resolutions: tuple[float, float] | None = None,
    *,
    finite: bool = True,
) -> tuple[Samples, Samples]:
    """Convert and check both sides of a pair; those that are prepared already are returned as they are.

    `finite=False` leaves the search for NaN and inf to the caller.
    """
    if isinstance(x, Samples) and isinstance(y, Samples):
        return x, y
    x, y = cast("Array", x), cast("Array", y)
    a, b = as_pair(x, y, finite=finite)
    of_x, of_y = resolutions or (resolution(x), resolution(y))
    return Samples(a, of_x, "x"), Samples(b, of_y, "y")


@dataclass(frozen=True, eq=False)
class Gauge:
    """A function of a pair (X, Y) that gives a number, or several by name.

    Called with X and Y, it computes its value.

    Attributes:
        name: its column in a table.
        function: gives the value of X and Y.
        range: the smallest and the largest value, or such a range for each name that the gauge gives. A bound
            is a number or a function of n and d, e.g. `(0, min)` for a rank.
        infinite: whether it may be inf where no finite number is right.
        batched: whether the function also takes a batch `[batch, samples, features]`.
        compute_many: gives the values of several batches of different widths at once, `[items]` for each.
        takes_samples: whether the function takes `Samples`, which gauges of the package share. Any other
            function gets copies, so that it cannot change what other gauges see.
    """

    name: str
    function: Callable[[Any, Any], GaugeValue]
    range: Range | Mapping[str, Range] = (-math.inf, math.inf)
    infinite: bool = False
    batched: bool = False
    compute_many: Callable[[Sequence[tuple[Samples, Samples]]], list[Tensor]] | None = None
    takes_samples: bool = False

    @classmethod
    def from_function(cls, function: GaugeFunction, **declared: Any) -> Gauge:
        """Make a gauge with the name of a function; `range`, `infinite` and `batched` may be declared."""
        return cls(getattr(function, "__name__", type(function).__name__), function, **declared)

    @torch.no_grad()
    def __call__(self, x: Array | Samples, y: Array | Samples) -> GaugeValue:
        """Compute the value of one pair, or of a batch if the gauge takes batches."""
        if self.takes_samples:
            return self.function(x, y)
        return self.function(*(torch.as_tensor(side).clone() for side in (x, y)))

    @property
    def ranges(self) -> dict[str, Range]:
        """The range of each column that the gauge gives."""
        if isinstance(self.range, Mapping):
            return {column_name(self.name, key): bounds for key, bounds in self.range.items()}
        return {self.name: self.range}

    def out_of_range(self, column: str, rows: Iterable[tuple[float, float, float]]) -> str | None:
        """Describe the first value outside the gauge's range; None if all are inside.

        A row is (value, n, d).
        """
        for value, n, d in rows:
            low, high = bounds_of(self.ranges[column], n, d)
            fits = low - _ROUNDING <= value <= high + _ROUNDING  # False for NaN
            if not fits or not (self.infinite or math.isfinite(value)):
                kind = "values" if self.infinite or math.isfinite(high - low) else "finite values"
                return f"{column}: expected {kind} from {low:g} to {high:g}, got {value:g}"
        return None


def column_name(gauge: str, key: str) -> str:
    """Return the column of one value of a gauge: `sparsity_before`."""
    return f"{gauge}_{key}" if key else gauge


def bounds_of(bounds: Range, n: float, d: float) -> tuple[float, float]:
    """Return a range as numbers, for a pair `[n, d]`."""
    low, high = (bound(n, d) if callable(bound) else bound for bound in bounds)
    return low, high


def values_of(value: Any) -> Mapping[str, Any]:
    """Return the values of a gauge by name; a single one has an empty name."""
    return value if isinstance(value, Mapping) else {"": value}


def indices_of_equal(kinds: Iterable[Hashable]) -> list[list[int]]:
    """Group the indices of equal entries.

    Example:
        >>> indices_of_equal(["narrow", "wide", "narrow"])
        [[0, 2], [1]]
    """
    found: dict[Hashable, list[int]] = {}
    for index, kind in enumerate(kinds):
        found.setdefault(kind, []).append(index)
    return list(found.values())
