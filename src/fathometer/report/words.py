"""What stands out in a sounding, in words."""

from __future__ import annotations

import numpy as np

from fathometer.compare import signature_statistics, two_modes
from fathometer.sounding import Sounding

_FEW = 5


def what_stands_out(sounding: Sounding, gauge: str = "affinity", *, groups: bool = True) -> str:
    """Its extremes by name, its middle and spread, whether it falls into two groups; a few sentences.

    Sites without a finite value are counted, and otherwise left out. Without `groups` nothing is said of two
    groups, which take a simulation for every number of sites.
    """
    values = sounding.mean(gauge)
    finite = values[np.isfinite(values.to_numpy(float))]
    missing = len(values) - len(finite)
    if not len(finite):
        return f"{in_words(gauge).capitalize()} has no value at any site."
    gap = f" {missing} of {len(values)} sites have no value." if missing else ""
    low, high = finite.idxmin(), finite.idxmax()
    if len(finite) == 1:
        return f"One site, {low}: {in_words(gauge)} {_number(finite.iloc[0])}.{gap}"
    if gauge.startswith("affinity"):
        first = (
            f"The most linear of {len(finite)} sites is {high} ({_number(finite.max())}), "
            f"the most non-linear {low} ({_number(finite.min())})."
        )
    else:
        first = (
            f"{in_words(gauge).capitalize()} is highest at {high} ({_number(finite.max())}) "
            f"and lowest at {low} ({_number(finite.min())}), of {len(finite)} sites."
        )
    spread = float(finite.max() - finite.min())
    second = f" The median is {_number(float(finite.median()))}, the spread {_number(spread)}."
    return first + second + (_groups(finite.to_numpy(float)) if groups else "") + gap


def in_words(gauge: str) -> str:
    """The name of a gauge as one says it."""
    return "affinity score" if gauge == "affinity" else gauge.replace("_", " ")


def _groups(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    if len(values) < _FEW or not signature_statistics(values)["bimodal"]:
        return ""
    modes = two_modes(values)
    return (
        f" The values fall into two groups, around {_number(modes.low)} and {_number(modes.high)} "
        f"({modes.share:.0%} in the upper one)."
    )


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) >= 1000 or 0 < abs(value) < 0.001 else f"{value:.3f}"
