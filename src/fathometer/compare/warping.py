"""Dynamic time warping: many pairs at once, along the anti-diagonals of their dynamic programme.

Series are one-dimensional. Inside, `[position, pair]`, so that a step over all pairs runs along memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fathometer.compare.series import as_series

_PAIRS = 256
"""Pairs in a piece: three diagonals of 150 positions then stay in a core's cache."""


def dtw(x: Sequence[float] | NDArray[np.float64], y: Sequence[float] | NDArray[np.float64]) -> float:
    """The dynamic time warping distance of two series, which may differ in length.

    DTW(x, y) = min over π of sqrt( Σ over (i, j) in π of (xᵢ − yⱼ)² ), where π goes from (0, 0) to the ends
    by steps of one in i, in j or in both (Sakoe and Chiba, 1978; no window, as tslearn's and the paper's).

    Example:
        >>> dtw([0, 1, 2], [0, 0, 1, 1, 2, 2]), dtw([0, 0], [3, 4])
        (0.0, 5.0)
    """
    return float(dtw_matrix([x, y])[0, 1])


def dtw_path(
    x: Sequence[float] | NDArray[np.float64], y: Sequence[float] | NDArray[np.float64]
) -> tuple[list[tuple[int, int]], float]:
    """The best alignment of two series, and its distance. Where ways are equally good, both steps are taken.

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


def dtw_matrix(series: Sequence[Sequence[float] | NDArray[np.float64]]) -> NDArray[np.float64]:
    """The distances between all series, symmetric.

    Every series is held against all that are not longer, sorted by length, a piece at a time.

    Example:
        >>> dtw_matrix([[0, 0], [3, 4], [0]]).tolist()
        [[0.0, 5.0, 0.0], [5.0, 0.0, 5.0], [0.0, 5.0, 0.0]]
    """
    arrays = [as_series(values, f"series {place}") for place, values in enumerate(series)]
    order = sorted(range(len(arrays)), key=lambda place: len(arrays[place]))
    lengths = np.array([len(arrays[place]) for place in order])
    padded = np.zeros((lengths.max(initial=0), len(order)))
    for column, place in enumerate(order):
        padded[: lengths[column], column] = arrays[place]
    matrix = np.zeros((len(order), len(order)))
    for column, place in enumerate(order):
        for start in range(0, column, _PAIRS):
            others = slice(start, min(start + _PAIRS, column))
            found = _one_against_many(arrays[place], padded[:, others], lengths[others])
            matrix[place, order[others]] = matrix[order[others], place] = found
    return matrix


def _one_against_many(
    x: NDArray[np.float64], others: NDArray[np.float64], lengths: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Distances of `x` from the columns of `others`, of which the first `lengths` rows count.

    Diagonal s holds the cells (i, s − i). A cell needs (i, s − 1 − i) and (i − 1, s − i) of the last diagonal
    and (i − 1, s − 1 − i) of the one before. What is padded lies behind the end of a pair and is never looked
    at.
    """
    n, m, pairs = len(x), int(lengths[-1]), others.shape[1]  # the longest is the last
    x = np.repeat(x[:, None], pairs, axis=1)
    back = np.ascontiguousarray(others[m - 1 :: -1])
    # Row i + 1 is cell i. Row 0, and rows that no diagonal has reached, stay infinite: no way leads there.
    last, before, spare = (np.full((n + 1, pairs), np.inf) for _ in range(3))
    space, result = np.empty((min(n, m), pairs)), np.empty(pairs)
    first_of_length = np.searchsorted(lengths, np.arange(1, m + 2))
    for s in range(n + m - 1):
        low, high = max(0, s - m + 1), min(s, n - 1) + 1
        here = spare[low + 1 : high + 1]
        np.subtract(x[low:high], back[m - 1 - s + low : m - 1 - s + high], out=here)
        np.multiply(here, here, out=here)
        if s:
            best = np.minimum(last[low + 1 : high + 1], last[low:high], out=space[: high - low])
            np.minimum(best, before[low:high], out=best)
            here += best
        before, last, spare = last, spare, before
        length = s - n + 2
        if length >= 1:
            ended = slice(first_of_length[length - 1], first_of_length[length])
            result[ended] = last[n, ended]
    return np.sqrt(result)
