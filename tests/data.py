"""Samples that look like activations: correlated, shifted, of uneven scale."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]


def correlated(n: int, d: int, seed: int = 0) -> Matrix:
    """Samples with a full, uneven covariance and a mean of its own in each feature."""
    rng = np.random.default_rng(seed)
    scales = np.exp(rng.normal(size=d))
    mixed: Matrix = rng.normal(size=(n, d)) @ (rng.normal(size=(d, d)) / np.sqrt(d)) * scales
    return mixed + rng.normal(size=d)


def relu(x: Matrix) -> Matrix:
    return np.maximum(x, 0)
