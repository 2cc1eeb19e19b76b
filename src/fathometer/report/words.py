"""What stands out in a sounding, in words."""

from __future__ import annotations

import numpy as np

from fathometer.compare import two_modes
from fathometer.compare.summary import MIN_VALUES
from fathometer.results.sounding import Sounding


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
        return f"One site, {low}: {in_words(gauge)} {number(finite.iloc[0])}.{gap}"
    if gauge.startswith("affinity"):
        first = (
            f"The most linear of {len(finite)} sites is {high} ({number(finite.max())}), "
            f"the most non-linear {low} ({number(finite.min())})."
        )
    else:
        first = (
            f"{in_words(gauge).capitalize()} is highest at {high} ({number(finite.max())}) "
            f"and lowest at {low} ({number(finite.min())}), of {len(finite)} sites."
        )
    spread = float(finite.max() - finite.min())
    second = f" The median is {number(float(finite.median()))}, the spread {number(spread)}."
    return first + second + (_groups(finite.to_numpy(float)) if groups else "") + gap


def in_words(gauge: str) -> str:
    """The name of a gauge as one says it."""
    return "affinity score" if gauge == "affinity" else gauge.replace("_", " ")


def _groups(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    modes = two_modes(values) if len(values) >= MIN_VALUES else None
    if modes is None or not modes.clear:
        return ""
    return (
        f" The values fall into two groups, around {number(modes.low)} and {number(modes.high)} "
        f"({modes.share:.0%} in the upper one)."
    )


def number(value: float) -> str:
    """Write a number for reading: whole numbers as they are, others with three decimals.

    `number` in `page.js` does the same. Both are given the full value, so that one value always reads alike.

    Example:
        >>> number(0.12345), number(123.456), number(0.00012345), number(1.0)
        ('0.123', '123.5', '1.23e-04', '1')
    """
    size = abs(value)
    if size and not 1e-3 <= size < 1e5:
        return f"{value:.2e}"
    if float(value).is_integer():
        return str(int(value))
    return f"{value:.{1 if size >= 100 else 3}f}"
