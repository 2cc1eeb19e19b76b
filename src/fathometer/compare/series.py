"""What every function of numbers here asks first: is it a series, and does it vary?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fathometer.errors import InputError

_ROUNDING = 1e-12


def as_series(values: Sequence[float] | NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """A float64 array of one axis, not empty and finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise InputError(f"{name}: expected a series of at least one number, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{name}: expected finite numbers, got {array[~np.isfinite(array)][0]}")
    return array


def varies(values: NDArray[np.float64]) -> bool:
    """Whether max − min > 10⁻¹² max |x|: what is left of a constant after rounding is no variation.

    Example:
        >>> varies(np.array([1.0, 1 - 1e-16])), varies(np.array([1e-20, 2e-20]))
        (False, True)
    """
    return bool(len(values)) and float(np.ptp(values)) > _ROUNDING * float(np.abs(values).max())
