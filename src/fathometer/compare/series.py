"""Series of numbers: dynamic time warping of two or many, and checks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fathometer.compare.soundings import Array, Numbers
from fathometer.errors import InputError

_ROUNDING = 1e-12
_PAIRS = 256
"""Pairs computed together: three diagonals of 150 positions then stay in a core's cache."""


def dtw(x: Numbers, y: Numbers) -> float:
    """Compute the dynamic time warping distance of two series, which may differ in length.

    DTW(x, y) = min over π of sqrt( Σ over (i, j) in π of (xᵢ − yⱼ)² ), where π goes from (0, 0) to the ends
    by steps of one in i, in j or in both (Sakoe and Chiba, 1978; no window, like tslearn and the paper).

    Example:
        >>> dtw([0, 1, 2], [0, 0, 1, 1, 2, 2]), dtw([0, 0], [3, 4])
        (0.0, 5.0)
    """
    return float(dtw_matrix([x, y])[0, 1])


def dtw_path(x: Numbers, y: Numbers) -> tuple[list[tuple[int, int]], float]:
    """Return the best alignment of two series, and its distance. Among equal steps, the diagonal wins.

    Example:
        >>> dtw_path([0, 1, 2, 2], [0, 0, 2])
        ([(0, 0), (1, 1), (2, 2), (3, 2)], 1.0)
    """
    a, b = as_series(x, "x"), as_series(y, "y")
    total = np.full((len(a) + 1, len(b) + 1), np.inf)
    total[0, 0] = 0.0
    for i in range(len(a)):
        for j in range(len(b)):
            total[i + 1, j + 1] = (a[i] - b[j]) ** 2 + min(total[i, j], total[i, j + 1], total[i + 1, j])
    i, j = len(a), len(b)
    path = [(i - 1, j - 1)]
    while (i, j) != (1, 1):
        i, j = min(((i - 1, j - 1), (i - 1, j), (i, j - 1)), key=lambda cell: total[cell])
        path.append((i - 1, j - 1))
    return path[::-1], math.sqrt(total[-1, -1])


def dtw_matrix(series: Sequence[Numbers], *, normalise: bool = False, band: float | None = None) -> Array:
    """Compute the distances between all series, many pairs at once.

    Every series is compared with all that are not longer, sorted by length, `_PAIRS` at a time.

    Args:
        series: the series.
        normalise: compute the root mean square difference along the path instead of the root of the sum. A
            step in both series counts twice, so that the weights of every path add up to n + m, and the best
            path is the best also of the mean (Sakoe and Chiba's symmetric form).
        band: the largest difference of relative depths, (i + ½) / n and (j + ½) / m, of two entries that are
            paired; it is widened for short series, of which there would be no path.

    Example:
        >>> dtw_matrix([[0, 0], [3, 4], [0]]).tolist()
        [[0.0, 5.0, 0.0], [5.0, 0.0, 5.0], [0.0, 5.0, 0.0]]
        >>> dtw_matrix([[0, 0], [3, 3], [3]], normalise=True).tolist()
        [[0.0, 3.0, 3.0], [3.0, 0.0, 0.0], [3.0, 0.0, 0.0]]
    """
    arrays = [as_series(values, f"series {index}") for index, values in enumerate(series)]
    order = sorted(range(len(arrays)), key=lambda index: len(arrays[index]))
    lengths = np.array([len(arrays[index]) for index in order])
    padded = np.zeros((lengths.max(initial=0), len(order)))
    for column, index in enumerate(order):
        padded[: lengths[column], column] = arrays[index]
    matrix = np.zeros((len(order), len(order)))
    for column, index in enumerate(order):
        for start in range(0, column, _PAIRS):
            others = slice(start, min(start + _PAIRS, column))
            found = _one_against_many(arrays[index], padded[:, others], lengths[others], normalise, band)
            matrix[index, order[others]] = matrix[order[others], index] = found
    return matrix


def _one_against_many(
    x: Array, others: Array, lengths: NDArray[np.int64], normalise: bool, band: float | None
) -> Array:
    """Compute the distances of `x` from the columns of `others`, of which the first `lengths` rows count.

    The dynamic programme runs along anti-diagonals, for all pairs at once. Diagonal s holds the cells
    (i, s − i). A cell needs (i, s − 1 − i) and (i − 1, s − i) of the last diagonal and (i − 1, s − 1 − i) of
    the one before. Padding lies behind the end of a pair and is never read. Arrays are `[position, pair]`, so
    that a step over all pairs runs along memory.
    """
    n, m, pairs = len(x), int(lengths[-1]), others.shape[1]  # the longest is the last
    x = np.repeat(x[:, None], pairs, axis=1)
    back = np.ascontiguousarray(others[m - 1 :: -1])
    # Row i + 1 is cell i. Row 0, and rows that no diagonal has reached, stay infinite: no path leads there.
    last, before, spare = (np.full((n + 1, pairs), np.inf) for _ in range(3))
    space, result = np.empty((min(n, m), pairs)), np.empty(pairs)
    first_of_length = np.searchsorted(lengths, np.arange(1, m + 2))
    for s in range(n + m - 1):
        low, high = max(0, s - m + 1), min(s, n - 1) + 1
        here = spare[low + 1 : high + 1]
        np.subtract(x[low:high], back[m - 1 - s + low : m - 1 - s + high], out=here)
        np.multiply(here, here, out=here)
        if band is not None:
            here[_outside(np.arange(low, high), s, n, lengths, band)] = np.inf
        if s:
            best = np.minimum(last[low + 1 : high + 1], last[low:high], out=space[: high - low])
            if normalise:
                np.minimum(best, before[low:high] + here, out=best)
            else:
                np.minimum(best, before[low:high], out=best)
            here += best
        elif normalise:
            here *= 2
        before, last, spare = last, spare, before
        length = s - n + 2
        if length >= 1:
            ended = slice(first_of_length[length - 1], first_of_length[length])
            result[ended] = last[n, ended]
    return np.sqrt(result / (n + lengths) if normalise else result)


def _outside(
    i: NDArray[np.int64], s: int, n: int, lengths: NDArray[np.int64], band: float
) -> NDArray[np.bool_]:
    """Tell which cells (i, s − i) of all pairs are outside of the band, `[cells, pairs]`."""
    gap = np.abs((i[:, None] + 0.5) / n - (s - i[:, None] + 0.5) / lengths)
    found: NDArray[np.bool_] = gap > np.maximum(band, 0.5 / n + 0.5 / lengths) + _ROUNDING
    return found


def as_series(values: Numbers, name: str) -> Array:
    """Return a float64 array with one axis; it must not be empty, and finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise InputError(f"{name}: expected a series of at least one number, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{name}: expected finite numbers, got {array[~np.isfinite(array)][0]}")
    return array


def varies(values: Array) -> bool:
    """Return whether max − min > 10⁻¹² max |x|: rounding errors of a constant are no variation.

    Example:
        >>> varies(np.array([1.0, 1 - 1e-16])), varies(np.array([1e-20, 2e-20]))
        (False, True)
    """
    return bool(len(values)) and float(np.ptp(values)) > _ROUNDING * float(np.abs(values).max())
