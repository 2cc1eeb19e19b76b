"""One heap of scores or two? The dip says whether, a fit of two normal distributions where (Figure 5D)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fathometer.compare.dip import dip_test
from fathometer.compare.series import as_series, varies
from fathometer.errors import InputError

LEAST = 5
"""Values below which two modes are not asked for."""
_LEVEL = 0.05
_STEPS = 200
_STARTS = 9  # places at which the sample is first cut in two
_FLOOR = 1e-6  # of the variance, relative to that of the sample: two heaps without width have no likelihood


@dataclass(frozen=True)
class Modes:
    """Two normal distributions of one width, fitted to a sample, and whether it has more than one mode.

    Attributes:
        low: where the lower mode stands.
        high: where the upper one stands.
        width: the standard deviation of both.
        share: of the sample in the upper mode.
        ashman: Ashman's D = |high − low| / width; above 2 two normal distributions are told apart cleanly
            (Ashman, Bird and Zepf, 1994). It is large for many samples with one mode, too.
        dip: Hartigan's statistic (`dip_statistic`).
        p: how often a uniform sample of as many values has such a dip, by simulation (`dip_test`).
        count: of values.
    """

    low: float
    high: float
    width: float
    share: float
    ashman: float
    dip: float
    p: float
    count: int

    @property
    def clear(self) -> bool:
        """More than one mode: p of the dip is below 0.05. Skewed and flat heaps are one mode."""
        return self.p < _LEVEL


def two_modes(values: Sequence[float] | NDArray[np.float64]) -> Modes:
    """Where the modes of a sample would be, and whether there are two.

    The fit, by expectation and maximisation from up to nine starts, says where. Equal widths keep the
    likelihood bounded: with two, a mode may close in on one site. Whether is said by the dip alone, since
    anything that is not normal is fitted better by two normal distributions than by one. Few values far away
    from all others may take one of the two: look at `share`.

    Example:
        >>> modes = two_modes([0.50, 0.51, 0.52, 0.53, 0.54, 0.90, 0.91, 0.92, 0.93, 0.94])
        >>> round(modes.low, 3), round(modes.high, 3), round(modes.share, 3), modes.ashman > 2, modes.clear
        (0.52, 0.92, 0.5, True, True)
    """
    sample = as_series(values, "values")
    if len(sample) < LEAST:
        raise InputError(f"two modes: expected at least {LEAST} values, got {len(sample)}")
    mean, spread = float(sample.mean()), float(sample.std())
    if not varies(sample):
        return Modes(mean, mean, 0.0, 0.5, 0.0, 0.0, 1.0, len(sample))
    low, high, width, share = _fit((sample - mean) / spread)
    dip, p = dip_test(sample)
    return Modes(
        low=mean + spread * low,
        high=mean + spread * high,
        width=spread * width,
        share=share,
        ashman=(high - low) / width,
        dip=dip,
        p=p,
        count=len(sample),
    )


def _fit(sample: NDArray[np.float64]) -> tuple[float, float, float, float]:
    """Of a standardised sample: low, high, width and share, by expectation and maximisation.

    `[starts, values]`: all starts climb at once, each step raises the likelihood, and the most likely one is
    taken. A start is a cut between two different values, so that both sides have some.
    """
    values = np.unique(sample)
    cuts = np.unique(np.linspace(0, len(values) - 2, _STARTS).round().astype(int))
    upper = (sample > (values[cuts] + values[cuts + 1])[:, None] / 2).astype(float)
    for _ in range(_STEPS):
        share = np.clip(upper.mean(1, keepdims=True), 1e-9, 1 - 1e-9)
        high = (upper * sample).mean(1, keepdims=True) / share
        low = ((1 - upper) * sample).mean(1, keepdims=True) / (1 - share)
        variance = (upper * (sample - high) ** 2 + (1 - upper) * (sample - low) ** 2).mean(1, keepdims=True)
        variance = np.maximum(variance, _FLOOR)
        # log odds of the upper mode; the rest of the likelihood is common to both
        odds = np.log(share / (1 - share)) + ((sample - low) ** 2 - (sample - high) ** 2) / (2 * variance)
        upper = 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
    parts = np.log1p(-share) - (sample - low) ** 2 / (2 * variance) + np.logaddexp(0, odds)
    best = int((parts - 0.5 * np.log(variance)).sum(1).argmax())
    left, right, part = float(low[best, 0]), float(high[best, 0]), float(share[best, 0])
    width = math.sqrt(variance[best, 0])
    return (left, right, width, part) if left <= right else (right, left, width, 1 - part)
