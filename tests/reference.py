"""The plain dense score in float64, from other people's libraries: what the package is held against.

Where it fails, it is no oracle: at scales around 1e-50 POT's solver stops early, and with two samples
`sqrtm` of a nearly singular product is off by up to 1e-3.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.linalg
from sklearn.covariance import LedoitWolf

from fathometer.transport import DEFAULT_RIDGE, Ridge

Matrix = npt.NDArray[np.float64]


def dense_covariance(x: Matrix, covariance: str, ridge: Ridge) -> Matrix:
    """scikit-learn's Ledoit-Wolf, or the biased sample covariance, plus the ridge."""
    centred = x - x.mean(0)
    sample: Matrix = centred.T @ centred / len(x)
    sigma = LedoitWolf().fit(x).covariance_ if covariance == "ledoit-wolf" else sample
    amount = ridge.value * (np.trace(sample) / len(sample) if ridge.relative else 1.0)
    shifted: Matrix = sigma + amount * np.eye(len(sample))
    return shifted


def dense_map(sigma_x: Matrix, sigma_y: Matrix) -> Matrix:
    """A of Eq. (4), in its equivalent form without the inverse of Σ_Y, by SciPy's `sqrtm`."""
    root = np.real(scipy.linalg.sqrtm(sigma_x))
    inverse = np.linalg.inv(root)
    matrix: Matrix = inverse @ np.real(scipy.linalg.sqrtm(root @ sigma_y @ root)) @ inverse
    return matrix


def dense_w2(x: Matrix, y: Matrix) -> float:
    """POT's exact W₂ between two samples with uniform weights."""
    import ot  # the only part that needs POT

    cost = ot.dist(x, y)
    uniform = np.full(len(x), 1 / len(x))
    return float(np.sqrt(ot.emd2(uniform, uniform, cost, numItermax=10_000_000)))


def dense_score(x: Matrix, y: Matrix, covariance: str = "ledoit-wolf", ridge: Ridge = DEFAULT_RIDGE) -> float:
    """Eq. (5)."""
    sigma_x, sigma_y = (dense_covariance(z, covariance, ridge) for z in (x, y))
    moved = (x - x.mean(0)) @ dense_map(sigma_x, sigma_y)
    return float(1 - dense_w2(moved, y - y.mean(0)) / np.sqrt(2 * np.trace(sigma_y)))
