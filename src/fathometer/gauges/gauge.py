"""One record per gauge, and a pair as gauges take it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from fathometer.transport.arrays import Array, as_pair, exceeds_rounding, reach, resolution
from fathometer.transport.moments import centre

GaugeValue: TypeAlias = "float | Tensor | Mapping[str, float | Tensor]"
GaugeFunction: TypeAlias = "Callable[[Tensor, Tensor], GaugeValue]"
"""A function of X and Y, `[samples, features]` each, that gives a number, or several with a name each."""

Bound: TypeAlias = "float | Callable[[float, float], float]"
"""A number, or a function of n and d."""

Range: TypeAlias = "tuple[Bound, Bound]"
"""The least and the largest value."""

_ROUNDING = 1e-6  # by which a value may miss its range


class Centred(NamedTuple):
    """Both sides minus their means, `[items, n, d]`, and for each item whether they vary beyond rounding."""

    x: Tensor
    y: Tensor
    x_varies: Tensor
    y_varies: Tensor


class Prepared:
    """A pair, or a batch of pairs of one shape, with what several gauges need, each computed on first use.

    Attributes:
        given: X and Y as they came.
        resolution: the relative spacing of the numbers that X and Y were computed in.
    """

    def __init__(self, x: Array, y: Array, resolutions: tuple[float, float] | None = None) -> None:
        self.given = x, y
        self._resolutions = resolutions

    @cached_property
    def resolution(self) -> tuple[float, float]:
        """The relative spacing of the numbers that X and Y were computed in."""
        return self._resolutions or (resolution(self.given[0]), resolution(self.given[1]))

    @cached_property
    def sides(self) -> tuple[Tensor, Tensor]:
        """X and Y as float64 tensors `[..., n, d]` of one shape; NaN and inf are refused."""
        return as_pair(*self.given)

    @property
    def x(self) -> Tensor:
        """X as a float64 tensor."""
        return self.sides[0]

    @property
    def y(self) -> Tensor:
        """Y as a float64 tensor."""
        return self.sides[1]

    @cached_property
    def centred(self) -> Centred:
        """Both sides minus their means."""
        a, b = (side if side.ndim == 3 else side[None] for side in self.sides)
        (mean_a, a), (mean_b, b) = centre(a), centre(b)
        reach(a, "x")
        reach(b, "y")
        of_x, of_y = self.resolution
        return Centred(a, b, exceeds_rounding(mean_a, a, of_x), exceeds_rounding(mean_b, b, of_y))

    def each(self, values: Tensor) -> Tensor:
        """Return `[items]` values as they are for a batch, as a single number for a single pair."""
        return values if self.x.ndim == 3 else values[0]


@dataclass(frozen=True, eq=False)
class Gauge:
    """A function of a pair (X, Y) that gives a number, or several by name.

    Called with X and Y, it computes its value.

    Attributes:
        name: its column in a table.
        compute: gives the value of a `Prepared` pair.
        range: the least and the largest value, or such a range for each name that the gauge gives. A bound
            is a number or a function of n and d, e.g. `(0, min)` for a rank.
        infinite: whether it may be inf where no finite number is right.
        batched: whether `compute` also takes a batch `[batch, samples, features]`.
        together: gives the values of several batches of different widths at once, `[items]` for each.
        needs: what a pair must have: `equal_widths`, as many features in Y as in X.
        standard: whether it belongs to `"standard"`.
        function: the user's function that it was made from; None for a gauge of the package.
    """

    name: str
    compute: Callable[[Prepared], GaugeValue]
    range: Range | Mapping[str, Range] = (-math.inf, math.inf)
    infinite: bool = False
    batched: bool = False
    together: Callable[[Sequence[Prepared]], list[Tensor]] | None = None
    needs: frozenset[Literal["equal_widths"]] = frozenset()
    standard: bool = False
    function: GaugeFunction | None = None

    @classmethod
    def from_function(cls, function: GaugeFunction, **declared: Any) -> Gauge:
        """Make a gauge from a plain function of X and Y; `range`, `infinite` and `batched` may be declared.

        The function gets copies, so that it cannot change what other gauges see.
        """
        name = getattr(function, "__name__", type(function).__name__)
        return cls(name, partial(_call_on_copies, function), function=function, **declared)

    @torch.no_grad()
    def __call__(self, x: Array, y: Array) -> GaugeValue:
        """Compute the value of one pair, or of a batch if the gauge takes batches."""
        return self.compute(Prepared(x, y))

    @property
    def ranges(self) -> dict[str, Range]:
        """The range of each column that the gauge gives."""
        if isinstance(self.range, Mapping):
            return {column_name(self.name, key): bounds for key, bounds in self.range.items()}
        return {self.name: self.range}

    def fault(self, column: str, rows: Iterable[tuple[float, float, float]]) -> str | None:
        """Return what cannot be in a column, given its values with n and d each; None if all can be."""
        for value, n, d in rows:
            low, high = bounds_of(self.ranges[column], n, d)
            fits = low - _ROUNDING <= value <= high + _ROUNDING  # False for NaN
            if not fits or not (self.infinite or math.isfinite(value)):
                kind = "values" if self.infinite or math.isfinite(high - low) else "finite values"
                return f"{column}: expected {kind} from {low:g} to {high:g}, got {value:g}"
        return None


def _call_on_copies(function: GaugeFunction, pair: Prepared) -> GaugeValue:
    x, y = (torch.as_tensor(side).clone() for side in pair.given)
    return function(x, y)


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
