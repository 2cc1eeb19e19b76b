"""Hartigan's dip: how far a sample is from any distribution with one mode.

Samples are `[samples, values]`; inside, all of them are worked on at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fathometer.compare.series import as_series

_SIMULATIONS = 1999

_Floats = NDArray[np.float64]
_Places = NDArray[np.intp]


def dip_statistic(values: Sequence[float] | _Floats) -> float:
    """The dip of a sample: min over unimodal F of sup over x of |Fₙ(x) − F(x)| (Hartigan and Hartigan, 1985).

    F is convex up to its mode and concave after it, and may have a jump there; Fₙ is the share of values ≤ x.
    The dip does not change with shift and scale, is 0 for one repeated value, and at least 1 / 2n for n
    different ones.

    Example:
        >>> dip_statistic([0.0, 0.1, 0.2, 0.3]), dip_statistic([0.0, 0.0, 1.0, 1.0])
        (0.125, 0.25)
    """
    sample = as_series(values, "values")
    points, counts = np.unique(sample, return_counts=True)
    upper = np.cumsum(counts, dtype=np.float64)
    lower = np.asarray(upper - counts, np.float64)
    return float(_dips(points[None], lower[None], upper[None])[0]) / len(sample)


def dip_test(values: Sequence[float] | _Floats) -> tuple[float, float]:
    """The dip, and p: how often a uniform sample of as many values has such a dip or a larger one.

    The uniform distribution has the largest dips of all with one mode (in the limit of many values), so that
    for a normal or a skewed one p is too large rather than too small. Simulated by 1,999 samples with a fixed
    seed: p ≥ 0.0005.

    Example:
        >>> dip, p = dip_test([0.50, 0.51, 0.52, 0.53, 0.54, 0.90, 0.91, 0.92, 0.93, 0.94])
        >>> round(dip, 3), p < 0.05
        (0.225, True)
    """
    dip = dip_statistic(values)
    beyond = int((_null_dips(len(values)) >= dip - 1e-12).sum())
    return dip, (1 + beyond) / (1 + _SIMULATIONS)


@lru_cache(maxsize=256)
def _null_dips(count: int) -> _Floats:
    samples = np.sort(np.random.default_rng(count).random((_SIMULATIONS, count)), axis=1)
    upper = np.broadcast_to(np.arange(1.0, count + 1), samples.shape)
    return _dips(samples, upper - 1, upper) / count


def _dips(points: _Floats, lower: _Floats, upper: _Floats) -> _Floats:
    """The dip of every row, times n: different values in order, and how many of the sample are < and ≤ each.

    Left of the mode the best F is the greatest convex minorant of the steps, moved up by the dip; right of it
    the least concave majorant, moved down. They are drawn between two places low and high, which close in on
    the mode until the two are nowhere further apart than the steps are from either outside.
    """
    last = points.shape[1] - 1
    before = _corners_before(points, lower)
    after = last - _corners_before(-points[:, ::-1], -upper[:, ::-1])[:, ::-1]
    low, high, widths = np.zeros(len(points), np.intp), np.full(len(points), last), np.zeros(len(points))
    left = np.arange(len(points))  # the rows that are not finished
    while len(left):
        x, below, above = points[left], lower[left], upper[left]
        start, stop = low[left], high[left]
        under, convex = _hull(x, below, _chain(before[left], stop, start))
        over, concave = _hull(x, above, _chain(after[left], start, stop))
        gap = np.where(under | over, concave - convex, -1.0)  # widest where one of them has a corner
        widest = gap.argmax(1)
        at = np.arange(len(left)), widest
        new_start = np.where(under[at], widest, _last_corner(under)[at])
        new_stop = np.where(under[at], _next_corner(over)[at], widest)
        place = np.arange(last + 1)
        passed = (place >= start[:, None]) & (place < new_start[:, None])
        ahead = (place > new_stop[:, None]) & (place <= stop[:, None])
        outside = np.maximum(
            np.where(passed, above - convex, 0).max(1), np.where(ahead, concave - below, 0).max(1)
        )
        further = gap[at] > widths[left]
        widths[left] = np.where(further, np.maximum(widths[left], outside), widths[left])
        low[left], high[left] = new_start, new_stop
        left = left[further & (new_start < new_stop)]
    return widths / 2


def _corners_before(x: _Floats, y: _Floats) -> _Places:
    """For each place, the corner before it of the convex minorant of all points up to it."""
    rows = np.arange(len(x))
    before = np.zeros(x.shape, np.intp)
    for place in range(1, x.shape[1]):
        corner = np.full(len(x), place - 1)
        left = rows[corner > 0]  # the rows whose corner may lie above the line
        while len(left):
            middle = corner[left]
            first = before[left, middle]
            rise, run = y[left, middle] - y[left, first], x[left, middle] - x[left, first]
            above = rise * (x[left, place] - x[left, middle]) >= (y[left, place] - y[left, middle]) * run
            left, first = left[above], first[above]
            corner[left] = first
            left = left[first > 0]
        before[:, place] = corner
    return before


def _chain(pointers: _Places, start: _Places, stop: _Places) -> NDArray[np.bool_]:
    """The places on the way from one end to the other."""
    rows, here = np.arange(len(pointers)), start.copy()
    on = np.zeros(pointers.shape, bool)
    on[rows, start] = True
    while (here != stop).any():
        here = np.where(here == stop, stop, pointers[rows, here])
        on[rows, here] = True
    return on


def _hull(x: _Floats, y: _Floats, corners: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], _Floats]:
    """The corners, and the lines between them at every place."""
    first, second = np.maximum(_last_corner(corners), 0), np.minimum(_next_corner(corners), x.shape[1] - 1)
    x0, y0, x1, y1 = (np.take_along_axis(v, place, 1) for place in (first, second) for v in (x, y))
    share = np.divide(x - x0, x1 - x0, out=np.zeros_like(x), where=second > first)
    return corners, y0 + share * (y1 - y0)


def _last_corner(corners: NDArray[np.bool_]) -> _Places:
    return np.maximum.accumulate(np.where(corners, np.arange(corners.shape[1]), -1), axis=1)


def _next_corner(corners: NDArray[np.bool_]) -> _Places:
    backwards = np.where(corners, np.arange(corners.shape[1]), corners.shape[1])[:, ::-1]
    return np.minimum.accumulate(backwards, axis=1)[:, ::-1]
