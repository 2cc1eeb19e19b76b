"""Numbers that sum up a signature (Figures 3, 4 and 5C)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fathometer.compare.gathering import Soundings, signatures
from fathometer.compare.modes import LEAST, two_modes
from fathometer.compare.series import as_series, varies

STATISTICS = ("min", "max", "mean", "median", "std", "spread", "skewness")
"""Those that Figure 4 looks for a predictor among; the fit of two modes stands beside them."""
_MODES = ("low", "high", "share", "ashman", "dip", "p")
_KINDS = {"sites": int, "bimodal": bool}


def statistics(soundings: Soundings, gauge: str = "affinity") -> pd.DataFrame:
    """Of a gauge over the sites of each network: a row for each.

    Columns: `sites`; min, max, mean, median, std (population), spread = max − min, skewness (see
    `signature_statistics`); `low`, `high`, `share` and `ashman` of the fit of two modes, `dip` and its `p`
    (`two_modes`), missing below 5 sites; `bimodal`, whether p < 0.05.
    """
    found = signatures(soundings, gauge)
    rows = {name: signature_statistics(values) for name, values in found.items()}
    return pd.DataFrame.from_dict(rows, orient="index").astype(_KINDS).rename_axis("network")


def signature_statistics(values: Sequence[float] | NDArray[np.float64]) -> Mapping[str, float]:
    """The same of one array. Skewness is m₃ / m₂^(3/2), mₖ the k-th central moment; 0 where nothing varies.

    Example:
        >>> found = signature_statistics([0.2, 0.4, 0.4, 0.8])
        >>> {key: round(found[key], 3) for key in ("min", "median", "spread", "skewness")}
        {'min': 0.2, 'median': 0.4, 'spread': 0.6, 'skewness': 0.652}
    """
    sample = as_series(values, "values")
    centred = sample - sample.mean()
    std = float(sample.std())
    row = {
        "sites": float(len(sample)),
        "min": float(sample.min()),
        "max": float(sample.max()),
        "mean": float(sample.mean()),
        "median": float(np.median(sample)),
        "std": std,
        "spread": float(np.ptp(sample)),
        "skewness": float((centred**3).mean()) / std**3 if varies(sample) else 0.0,
    }
    modes = two_modes(sample) if len(sample) >= LEAST else None
    row |= {key: float(getattr(modes, key, np.nan)) for key in _MODES}
    return row | {"bimodal": bool(modes and modes.clear)}
