"""Where the values of the gauges lie, but for rounding: files and checks hold them to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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


def column_ranges() -> dict[str, Range]:
    """By the columns of a sounding, `sparsity_before` and so on."""
    parts = {gauge: its if isinstance(its, Mapping) else {"": its} for gauge, its in RANGES.items()}
    return {
        f"{gauge}_{name}" if name else gauge: found
        for gauge, its in parts.items()
        for name, found in its.items()
    }
