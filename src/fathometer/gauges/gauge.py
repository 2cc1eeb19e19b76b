"""The record of a gauge: its function, its range, and the shared quantities that it needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from inspect import Parameter, signature
from typing import Any, TypeAlias

import torch
from torch import Tensor

from fathometer.errors import InputError, did_you_mean
from fathometer.gauges.samples import QUANTITIES, Pair, prepare
from fathometer.transport.arrays import Array

GaugeValue: TypeAlias = "float | Tensor | Mapping[str, float | Tensor]"
GaugeFunction: TypeAlias = "Callable[..., GaugeValue]"
"""A function of X and Y, `[samples, features]` each, that gives a number, or several with a name each.

Its keyword-only parameters without a default are quantities that it shares with other gauges.
"""

Bound: TypeAlias = "float | Callable[[float, float], float]"
"""A number, or a function of n and d."""

Range: TypeAlias = "tuple[Bound, Bound]"
"""The smallest and the largest value."""

_ROUNDING = 1e-6  # by which a value may miss its range


LABELS = "labels"
SHARED = (*(f"{name}_{side}" for name in QUANTITIES for side in "xy"), LABELS)
"""What a gauge may need: quantities of either side, and the labels of the samples."""


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
        missing: whether it may be NaN where no number is right.
        batched: whether the function also takes a batch `[batch, samples, features]`.
        needs: quantities that it shares with other gauges (`SHARED`), e.g. `("spectrum_x",)`. The function
            gets them by keyword. Without labels, a gauge that needs `labels` is left out.
        compute_many: gives the values of several batches of different widths at once, `[items]` for each.
        joins_widths: whether features that are 0 do not matter, so that a GPU can append some and read pairs
            of different width in one batch.
        slow: whether it takes longer than most others together, so that a large pair gives it a thread.
        unequal: whether X and Y may have different widths; at such a pair other gauges are left out.
        takes_samples: whether the function takes `Samples`, as those of the package do, and reads shared
            quantities from them. Any other function gets copies, so that it cannot change what others see.
    """

    name: str
    function: Callable[..., GaugeValue]
    range: Range | Mapping[str, Range] = (-math.inf, math.inf)
    infinite: bool = False
    missing: bool = False
    batched: bool = False
    needs: tuple[str, ...] = ()
    compute_many: Callable[[Sequence[Pair]], list[Tensor]] | None = None
    joins_widths: bool = False
    slow: bool = False
    unequal: bool = False
    takes_samples: bool = False

    def __post_init__(self) -> None:
        for need in self.needs:
            if need not in SHARED:
                hint = did_you_mean(need, SHARED) or f"expected {', '.join(SHARED)}"
                raise InputError(
                    f"{self.name}: there is no shared quantity {need!r}; {hint}", parameter="gauges"
                )

    @classmethod
    def from_function(cls, function: GaugeFunction, **declared: Any) -> Gauge:
        """Make a gauge with the name of a function; `range`, `infinite` and the like may be declared.

        Keyword-only parameters without a default say what it `needs`. It also gets pairs of unequal widths.

        Example:
            >>> def share_of_first(x, y, *, spectrum_x):
            ...     return spectrum_x[0] / spectrum_x.sum()
            >>> Gauge.from_function(share_of_first).needs
            ('spectrum_x',)
        """
        name = getattr(function, "__name__", type(function).__name__)
        return cls(name, function, **{"needs": _keyword_parameters(function), "unequal": True, **declared})

    def __call__(self, x: Array, y: Array, labels: Tensor | None = None) -> GaugeValue:
        """Compute the value of one pair, or of a batch if the gauge takes batches."""
        return self.read(
            torch.as_tensor(x),
            torch.as_tensor(y),
            cache(partial(prepare, x, y, unequal=self.unequal)),
            labels,
        )

    @torch.no_grad()
    def read(self, x: Tensor, y: Tensor, prepared: Callable[[], Pair], labels: Tensor | None) -> GaugeValue:
        """Compute the value of one pair, with quantities of the prepared pair, which gauges share."""
        given = {LABELS: labels} if LABELS in self.needs else {}
        if self.takes_samples:
            pair = prepared()
            return self.function(pair.x, pair.y, **given)
        given |= {need: prepared().quantity(need) for need in self.needs if need != LABELS}
        copies = {need: None if value is None else value.clone() for need, value in given.items()}
        return self.function(x.clone(), y.clone(), **copies)

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
            if math.isnan(value) and self.missing:
                continue
            fits = low - _ROUNDING <= value <= high + _ROUNDING  # False for NaN
            if not fits or not (self.infinite or math.isfinite(value)):
                kind = "values" if self.infinite or math.isfinite(high - low) else "finite values"
                return f"{column}: expected {kind} from {low:g} to {high:g}, got {value:g}"
        return None


def _keyword_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    try:
        parameters = signature(function).parameters.values()
    except ValueError:  # some functions of C have no signature
        return ()
    return tuple(
        parameter.name
        for parameter in parameters
        if parameter.kind is Parameter.KEYWORD_ONLY and parameter.default is Parameter.empty
    )


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
