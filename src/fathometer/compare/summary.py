"""Statistics of a signature: its moments, and whether its values have two modes (Figures 3, 4, 5C and 5D)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from fathometer.compare.series import as_series, varies
from fathometer.compare.soundings import Array, Numbers, Soundings, signatures
from fathometer.errors import InputError, import_extra

STATISTICS = ("min", "max", "mean", "median", "std", "spread", "skewness")
"""Candidates for the predictor of Figure 4; the two modes are reported beside them."""
MIN_VALUES = 5
"""With fewer values, no modes are computed."""
_MODES = ("low", "high", "share", "ashman", "dip", "p")
_LEVEL = 0.05
_SIMULATIONS = 1999
_STARTS = 9  # splits of the sample from which the mixture is fitted
_VARIANCE_FLOOR = 1e-6  # relative to that of the sample: two groups without width have no likelihood


def statistics(soundings: Soundings, gauge: str = "affinity") -> pd.DataFrame:
    """Summarise a gauge over the sites of each network, one row per network.

    Columns: `sites`; min, max, mean, median, std (population), spread = max − min, skewness (see
    `signature_statistics`); `low`, `high`, `share` and `ashman` of the fit of two modes, `dip` and its `p`
    (`two_modes`), missing below 5 sites; `bimodal`, whether p < 0.05.
    """
    found = signatures(soundings, gauge)
    rows = {name: signature_statistics(values) for name, values in found.items()}
    table = pd.DataFrame.from_dict(rows, orient="index").astype({"sites": int, "bimodal": bool})
    return table.rename_axis("network")


def signature_statistics(values: Numbers) -> Mapping[str, float]:
    """Summarise one array. Skewness is m₃ / m₂^(3/2), mₖ the k-th central moment; 0 if nothing varies.

    Example:
        >>> found = signature_statistics([0.2, 0.4, 0.4, 0.8])
        >>> {key: round(found[key], 3) for key in ("min", "median", "spread", "skewness")}
        {'min': 0.2, 'median': 0.4, 'spread': 0.6, 'skewness': 0.652}
    """
    sample = as_series(values, "values")
    std = float(sample.std())
    row = {
        "sites": float(len(sample)),
        "min": float(sample.min()),
        "max": float(sample.max()),
        "mean": float(sample.mean()),
        "median": float(np.median(sample)),
        "std": std,
        "spread": float(np.ptp(sample)),
        "skewness": float(((sample - sample.mean()) ** 3).mean()) / std**3 if varies(sample) else 0.0,
    }
    modes = two_modes(sample) if len(sample) >= MIN_VALUES else None
    row |= {key: float(getattr(modes, key, np.nan)) for key in _MODES}
    return row | {"bimodal": bool(modes and modes.clear)}


def dip_statistic(values: Numbers) -> float:
    """Compute Hartigan's dip: min over unimodal F of sup over x of |Fₙ(x) − F(x)| (Hartigan, 1985).

    F is convex up to its mode and concave after it, and may jump at the mode; Fₙ is the share of values ≤ x.
    The dip does not change with shift and scale, is 0 for one repeated value, and at least 1 / 2n for n
    different ones. Computed by the package diptest.

    Example:
        >>> dip_statistic([0.0, 0.1, 0.2, 0.3]), dip_statistic([0.0, 0.0, 1.0, 1.0])
        (0.125, 0.25)
    """
    sample = np.sort(as_series(values, "values"))
    if sample[0] == sample[-1]:
        return 0.0
    return float(_diptest().dipstat(sample, allow_zero=False, sort_x=False))


def dip_test(values: Numbers) -> tuple[float, float]:
    """Return the dip, and p: how often a uniform sample of as many values has such a dip or a larger one.

    Of all distributions with one mode, the uniform one has the largest dips (in the limit of many values), so
    that for a normal or a skewed one p is too large rather than too small. Simulated by 1,999 samples with a
    fixed seed: p ≥ 0.0005.

    Example:
        >>> dip, p = dip_test([0.50, 0.51, 0.52, 0.53, 0.54, 0.90, 0.91, 0.92, 0.93, 0.94])
        >>> round(dip, 3), p < 0.05
        (0.225, True)
    """
    dip = dip_statistic(values)
    larger = int((_uniform_dips(len(values)) >= dip - 1e-12).sum())
    return dip, (1 + larger) / (1 + _SIMULATIONS)


@lru_cache(maxsize=256)
def _uniform_dips(count: int) -> Array:
    samples = np.sort(np.random.default_rng(count).random((_SIMULATIONS, count)), axis=1)
    dipstat = _diptest().dipstat
    return np.array([dipstat(sample, allow_zero=False, sort_x=False) for sample in samples])


@dataclass(frozen=True)
class Modes:
    """Two normal distributions of the same width, fitted to a sample, and whether it has several modes.

    Attributes:
        low: position of the lower mode.
        high: position of the upper mode.
        width: the standard deviation of both.
        share: share of the sample in the upper mode.
        ashman: Ashman's D = |high − low| / width; above 2 two normal distributions are clearly separated
            (Ashman, Bird and Zepf, 1994). It is also large for many samples with one mode.
        dip: Hartigan's statistic (`dip_statistic`).
        p: how often a uniform sample of as many values has such a dip, by simulation (`dip_test`).
        count: number of values.
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
        """Whether there is more than one mode: p of the dip is below 0.05."""
        return self.p < _LEVEL


def two_modes(values: Numbers) -> Modes:
    """Find where the modes of a sample would be, and test whether there are two.

    The fit (scikit-learn's `GaussianMixture`, from up to nine starts) says where. With equal widths the
    likelihood is bounded; with two widths a mode may shrink to one site. The dip alone says whether: any
    sample that is not normal is fitted better by two normal distributions than by one. Few values far from
    all others may become one of the two modes: look at `share`.

    Example:
        >>> modes = two_modes([0.50, 0.51, 0.52, 0.53, 0.54, 0.90, 0.91, 0.92, 0.93, 0.94])
        >>> round(modes.low, 3), round(modes.high, 3), round(modes.share, 3), modes.ashman > 2, modes.clear
        (0.52, 0.92, 0.5, True, True)
    """
    sample = as_series(values, "values")
    if len(sample) < MIN_VALUES:
        raise InputError(f"two modes: expected at least {MIN_VALUES} values, got {len(sample)}")
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


def _fit(sample: Array) -> tuple[float, float, float, float]:
    """Fit two normal distributions to a standardised sample; return low, high, width and share.

    A start is a split of the sample between two different values, so that both sides have some.
    """
    purpose = "the fit of two modes"
    sklearn = import_extra("sklearn", "mixture", extra="compare", purpose=purpose, package="scikit-learn")
    values = np.unique(sample)
    fits = []
    for cut in np.unique(np.linspace(0, len(values) - 2, _STARTS).round().astype(int)):
        upper = sample > (values[cut] + values[cut + 1]) / 2
        means = np.array([sample[~upper].mean(), sample[upper].mean()])
        variance = max(float(((sample - means[upper.astype(int)]) ** 2).mean()), _VARIANCE_FLOOR)
        mixture = sklearn.mixture.GaussianMixture(
            2,
            covariance_type="tied",
            tol=1e-10,
            max_iter=200,
            reg_covar=_VARIANCE_FLOOR,
            weights_init=[1 - upper.mean(), upper.mean()],
            means_init=means[:, None],
            precisions_init=[[1 / variance]],
        )
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", sklearn.exceptions.ConvergenceWarning
            )  # 200 steps are enough for a picture
            fits.append(mixture.fit(sample[:, None]))
    best = max(fits, key=lambda fit: fit.lower_bound_)
    low, high = np.argsort(best.means_[:, 0])
    width = float(np.sqrt(best.covariances_[0, 0]))
    return float(best.means_[low, 0]), float(best.means_[high, 0]), width, float(best.weights_[high])


def _diptest() -> Any:
    return import_extra("diptest", extra="compare", purpose="the test for two modes")
