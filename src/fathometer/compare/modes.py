"""One heap of scores or two? A fit of two normal distributions, held against one (Figure 5D)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fathometer.compare.dtw import as_series
from fathometer.errors import InputError

_STEPS = 200
_SIMULATIONS = 499
_STARTS = (0.1, 0.3, 0.5, 0.7, 0.9)  # quantiles at which the sample is first cut in two
_LEAST = 5  # below that a fit of two modes says nothing
_FLOOR = 1e-6  # of the variance, relative to that of the sample: two heaps without width have no likelihood


@dataclass(frozen=True)
class Modes:
    """Two normal distributions of one width, fitted to a sample, and whether one would do.

    Attributes:
        low: where the lower mode stands.
        high: where the upper one stands.
        width: the standard deviation of both.
        share: of the sample in the upper mode.
        ashman: Ashman's D = |high − low| / width; above 2 the two are told apart cleanly (Ashman, Bird and
            Zepf, 1994).
        ratio: 2 log of the likelihood ratio, two normal distributions against one.
        p: how often a sample of as many normal numbers gives such a ratio, by simulation.
        count: of values.
    """

    low: float
    high: float
    width: float
    share: float
    ashman: float
    ratio: float
    p: float
    count: int

    @property
    def clear(self) -> bool:
        """Two modes indeed: D above 2, p below 0.05, each with two values and a tenth of the sample at least.

        The last keeps out one heap with few values far away, which are not normal either.
        """
        smaller = min(self.share, 1 - self.share)
        return self.ashman > 2 and self.p < 0.05 and smaller >= 0.1 and smaller * self.count > 1.5


def two_modes(values: Sequence[float] | NDArray[np.float64]) -> Modes:
    """The two-mode fit of a sample, by expectation and maximisation from five starts.

    Equal widths keep the likelihood bounded: with two, a mode may close in on one site. The ratio has no χ²
    law, since under one mode the second is anywhere; but it does not change with shift and scale, so that its
    law depends on the number of values alone and is simulated (499 samples, fixed seed: p ≥ 0.002). The test
    rejects one *normal* distribution: a heap with a long tail is rejected too. `Modes.clear` asks for more.

    Example:
        >>> modes = two_modes([0.50, 0.51, 0.52, 0.53, 0.54, 0.90, 0.91, 0.92, 0.93, 0.94])
        >>> round(modes.low, 3), round(modes.high, 3), modes.share, modes.ashman > 2, modes.p < 0.05
        (0.52, 0.92, 0.5, True, True)
    """
    sample = as_series(values, "values")
    if len(sample) < _LEAST:
        raise InputError(f"two modes: expected at least {_LEAST} values, got {len(sample)}")
    spread = float(sample.std())
    if spread <= 1e-12 * max(1.0, float(np.abs(sample).max())):
        mean = float(sample.mean())
        return Modes(mean, mean, 0.0, 0.5, 0.0, 0.0, 1.0, len(sample))
    ratio, low, high, width, share = (
        float(part[0]) for part in _fit(((sample - sample.mean()) / spread)[None])
    )
    beyond = int((_null_ratios(len(sample)) >= ratio).sum())
    mean = float(sample.mean())
    return Modes(
        low=mean + spread * low,
        high=mean + spread * high,
        width=spread * width,
        share=share,
        ashman=(high - low) / width,
        ratio=ratio,
        p=(1 + beyond) / (1 + _SIMULATIONS),
        count=len(sample),
    )


@lru_cache(maxsize=256)
def _null_ratios(count: int) -> NDArray[np.float64]:
    samples = np.random.default_rng(count).standard_normal((_SIMULATIONS, count))
    samples -= samples.mean(1, keepdims=True)
    return _fit(samples / samples.std(1, keepdims=True))[0]


def _fit(samples: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Of standardised samples `[samples, values]`: ratio, low, high, width and share of the best start."""
    best: tuple[NDArray[np.float64], ...] | None = None
    for start in _STARTS:
        found = _climb(samples, start)
        best = (
            found
            if best is None
            else tuple(np.where(found[0] > best[0], new, old) for new, old in zip(found, best, strict=True))
        )
    assert best is not None
    return best


def _climb(samples: NDArray[np.float64], start: float) -> tuple[NDArray[np.float64], ...]:
    """Expectation and maximisation from a cut at a quantile; each step raises the likelihood."""
    upper = (samples > np.quantile(samples, start, axis=1, keepdims=True)).astype(float)
    upper = np.clip(upper, 1e-3, 1 - 1e-3)
    for _ in range(_STEPS):
        share = upper.mean(1, keepdims=True)
        high = (upper * samples).mean(1, keepdims=True) / share
        low = ((1 - upper) * samples).mean(1, keepdims=True) / (1 - share)
        variance = (upper * (samples - high) ** 2 + (1 - upper) * (samples - low) ** 2).mean(1, keepdims=True)
        variance = np.maximum(variance, _FLOOR)
        # log odds of the upper mode; the rest of the likelihood is common to both
        odds = np.log(share / (1 - share)) + ((samples - low) ** 2 - (samples - high) ** 2) / (2 * variance)
        upper = np.clip(1 / (1 + np.exp(-np.clip(odds, -500, 500))), 1e-9, 1 - 1e-9)
    parts = np.log1p(-share) - (samples - low) ** 2 / (2 * variance) + np.logaddexp(0, odds)
    two = (parts - 0.5 * np.log(2 * math.pi * variance)).sum(1)
    one = -0.5 * samples.shape[1] * (math.log(2 * math.pi) + 1)  # standardised: variance 1
    swapped = (low > high)[:, 0]
    low, high, share = low[:, 0], high[:, 0], share[:, 0]
    return (
        np.maximum(2 * (two - one), 0),
        np.where(swapped, high, low),
        np.where(swapped, low, high),
        np.sqrt(variance[:, 0]),
        np.where(swapped, 1 - share, share),
    )
