"""Where the values of the gauges lie, but for rounding: files and checks hold them to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

Bound: TypeAlias = "float | Callable[[float, float], float]"
"""A number, or a function of n and d."""

Range: TypeAlias = "tuple[Bound, Bound]"
"""The least and the largest value."""

_SHARE = (0.0, 1.0)
_NATS = math.log(256)  # of an entropy over 256 bins
_RANK: Range = (0.0, min)

RANGES: dict[str, Range | Mapping[str, Range]] = {
    "affinity": _SHARE,
    "affinity_sample": _SHARE,
    "cka": _SHARE,
    "r2": _SHARE,
    "r2_heldout": (-math.inf, 1.0),
    "sparsity": {"before": _SHARE, "after": _SHARE, "change": (-1.0, 1.0)},
    "entropy": {"before": (0.0, _NATS), "after": (0.0, _NATS), "change": (-_NATS, _NATS)},
    "norm": (0.0, math.inf),
    "stable_rank": {"x": _RANK, "y": _RANK},
    "cost_of_identity": (0.0, math.inf),
    "nonnegativity": {"entries": _SHARE, "energy": _SHARE},
}
"""Of each gauge of the package; of one with several values, of each by its name."""

INFINITE = frozenset({"cost_of_identity"})
"""Gauges that may be inf where no finite number is right. All others are finite, and none is ever NaN."""

_ROUNDING = 1e-6


def column_ranges() -> dict[str, Range]:
    """By the columns of a sounding, `sparsity_before` and so on."""
    parts = {gauge: its if isinstance(its, Mapping) else {"": its} for gauge, its in RANGES.items()}
    return {
        f"{gauge}_{name}" if name else gauge: found
        for gauge, its in parts.items()
        for name, found in its.items()
    }


def fault_of(column: str, rows: Iterable[tuple[float, float, float]]) -> str | None:
    """What cannot be in a column of a sounding, given its values with n and d each, if anything is.

    Columns of other gauges may hold anything. The path along residual blocks has no value missing in the
    columns that it shares with the package's: only in its `speed`.

    Example:
        >>> fault_of("affinity", [(0.5, 40, 6), (1.5, 40, 6)])
        'affinity: expected values from 0 to 1, got 1.5'
        >>> fault_of("stable_rank_x", [(5.5, 40, 6), (5.5, 40, 5)])
        'stable_rank_x: expected values from 0 to 5, got 5.5'
    """
    bounds = column_ranges().get(column)
    if bounds is None:
        return None
    infinite = column in INFINITE
    for value, n, d in rows:
        low, high = (bound(n, d) if callable(bound) else bound for bound in bounds)
        fits = low - _ROUNDING <= value <= high + _ROUNDING  # which no NaN does
        if not fits or not (infinite or math.isfinite(value)):
            kind = "values" if infinite or math.isfinite(high - low) else "finite values"
            return f"{column}: expected {kind} from {low:g} to {high:g}, got {value:g}"
    return None
