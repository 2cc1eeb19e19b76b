"""Score functions of one variable on evenly spread inputs (Figure 2).

The covariance is the plain one of the sample: in one dimension it needs no shrinkage.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd
import torch
from torch import Tensor

from fathometer.activations.catalogue import activations
from fathometer.errors import InputError, check_whole
from fathometer.gauges.affinity import affinity_score

_MAX_DEGREE = 10_000
PAPER_DEGREES = (1, 3, 5, 11, 21, 41)
DEFAULT_RANGES = ((-2.0, 2.0), (-1.0, 2.0), (-0.5, 2.0), (0.0, 2.0), (-2.0, 0.5), (-8.0, 8.0))


def polynomial_scores(degrees: Sequence[int] = PAPER_DEGREES, *, samples: int = 1000) -> pd.DataFrame:
    """Score x^k on [-1, 1] by degree k (Figure 2C): among odd k, the higher the less affine.

    Example:
        >>> polynomial_scores([1, 3]).round(3)["score"].tolist()
        [1.0, 0.711]
    """
    if not isinstance(degrees, Iterable) or not (degrees := list(degrees)):
        raise InputError(f"expected one or more whole numbers, got {degrees!r}", parameter="degrees")
    degrees = [check_whole("degrees", degree, 1, maximum=_MAX_DEGREE) for degree in degrees]
    x = _even(-1.0, 1.0, samples)
    return pd.DataFrame([{"degree": k, "score": _score(x, x**k)} for k in degrees])


def range_scores(
    names: Sequence[str] = ("ReLU", "Tanh", "Sigmoid"),
    *,
    ranges: Sequence[tuple[float, float]] = DEFAULT_RANGES,
    samples: int = 1000,
) -> pd.DataFrame:
    """Score activations by the range of their input (Figures 2A and 2B).

    Example:
        >>> range_scores(["ReLU"], ranges=[(-1, 1), (0, 1)]).round(3)["score"].tolist()
        [0.675, 1.0]
    """
    if not ranges:
        raise InputError("expected one or more pairs (low, high), got none", parameter="ranges")
    rows = []
    for name, function in activations(names).items():
        for low, high in ranges:
            x = _even(low, high, samples)
            score = _score(x, function(x))
            rows.append({"activation": name, "low": low, "high": high, "score": score})
    return pd.DataFrame(rows)


def _even(low: float, high: float, samples: int) -> Tensor:
    if not low < high:
        raise InputError(f"expected low < high, got {low}:{high}", parameter="ranges")
    check_whole("samples", samples, 2)
    return torch.linspace(low, high, samples, dtype=torch.float64)[:, None]


def _score(x: Tensor, y: Tensor) -> float:
    return float(affinity_score(x, y, covariance="sample"))
