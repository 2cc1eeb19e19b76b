"""Distances between signatures: along their sites (dynamic time warping, Euclidean), or as distributions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fathometer.compare.soundings import Array, Numbers, Soundings, by_name, comparable, signatures
from fathometer.errors import InputError, check_choice
from fathometer.results.sounding import Sounding

Metric: TypeAlias = Literal["dtw", "euclidean", "wasserstein"]
Align: TypeAlias = Literal["auto", "sites", "dtw"]

_ROUNDING = 1e-12
_PAIRS = 256
"""Pairs computed together: three diagonals of 150 positions then stay in a core's cache."""


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances between networks.

    Attributes:
        names: the networks.
        matrix: `[networks, networks]`, symmetric, 0 on the diagonal.
        metric: `dtw`, `euclidean` or `wasserstein`.
        gauge: the gauge that was compared along depth.
    """

    names: tuple[str, ...]
    matrix: Array
    metric: Metric
    gauge: str

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64)
        count = len(self.names)
        is_square = matrix.shape == (count, count)
        if not is_square or not np.isfinite(matrix).all() or (matrix < 0).any():
            raise InputError(
                f"expected {count} × {count} finite distances ≥ 0, a row per name; got shape {matrix.shape}",
                parameter="matrix",
            )
        if (matrix != matrix.T).any() or np.diagonal(matrix).any():
            raise InputError("expected a symmetric matrix with 0 on the diagonal", parameter="matrix")
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)

    @property
    def frame(self) -> pd.DataFrame:
        """The matrix as a table with the names of the networks."""
        return pd.DataFrame(self.matrix, index=list(self.names), columns=list(self.names))

    @property
    def condensed(self) -> Array:
        """The upper triangle row by row, as SciPy's clustering expects it."""
        return self.matrix[np.triu_indices(len(self.names), 1)]


def distances(
    soundings: Soundings, gauge: str = "affinity", metric: Metric = "dtw", *, allow_mismatch: bool = False
) -> Distances:
    """Compute the distances between the signatures of networks (Figures 5B, 14, 17).

    Args:
        soundings: by name, or a list.
        gauge: any gauge that all of them hold.
        metric: `dtw` (dynamic time warping, as in the paper: any lengths), `euclidean` (‖x − y‖, equal
            lengths only), or `wasserstein` (W₁ between the distributions of scores, whatever their order).
        allow_mismatch: also compare soundings that differ in data, reduction or samples, with a warning.

    Example:
        >>> import torch
        >>> from fathometer import measure
        >>> nets = {name: torch.nn.Sequential(torch.nn.Linear(4, 4), layer)
        ...         for name, layer in (("a", torch.nn.ReLU()), ("b", torch.nn.Tanh()))}
        >>> data = torch.randn(100, 4)
        >>> found = distances({name: measure(net, data, samples=50) for name, net in nets.items()})
        >>> found.names, found.metric, found.matrix.shape
        (('a', 'b'), 'dtw', (2, 2))
    """
    return signature_distances(
        signatures(comparable(soundings, gauge, allow_mismatch=allow_mismatch), gauge), metric, gauge=gauge
    )


def signature_distances(
    series: Mapping[str, Array], metric: Metric = "dtw", *, gauge: str = "affinity"
) -> Distances:
    """Compute the distances between arrays, given by name.

    Example:
        >>> signature_distances({"a": [0, 1], "b": [1, 1], "c": [1, 0]}, "wasserstein").matrix.tolist()
        [[0.0, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.0]]
    """
    check_choice("metric", metric, Metric)
    names = tuple(series)
    arrays = [as_series(values, name) for name, values in series.items()]
    if metric == "dtw":
        matrix = dtw_matrix(arrays)
    else:
        matrix = _euclidean(names, arrays) if metric == "euclidean" else _wasserstein(arrays)
    return Distances(names, matrix, metric, gauge)


def _euclidean(names: tuple[str, ...], arrays: list[Array]) -> Array:
    for name, array in zip(names, arrays, strict=True):
        if len(array) != len(arrays[0]):
            raise InputError(
                f"euclidean needs signatures of the same length, but {names[0]} has {len(arrays[0])} sites "
                f"and {name} {len(array)}; use dtw or wasserstein",
                parameter="metric",
            )
    stacked = np.array(arrays)
    return np.stack([np.sqrt(((stacked - row) ** 2).sum(axis=1)) for row in stacked])


def _wasserstein(arrays: list[Array]) -> Array:
    from scipy.stats import wasserstein_distance

    matrix = np.zeros((len(arrays), len(arrays)))
    for i, j in combinations(range(len(arrays)), 2):
        matrix[i, j] = matrix[j, i] = wasserstein_distance(arrays[i], arrays[j])
    return matrix


class Alignment(NamedTuple):
    """Pairs of corresponding sites of two soundings, in order of depth.

    Attributes:
        pairs: `[pairs, 2]`, indices in the first and in the second sounding.
        distance: sqrt( Σ (xᵢ − yⱼ)² ) over the pairs: that of DTW, or the Euclidean one for equal sites.
        how: `sites`, one to one by name, or `dtw`.
    """

    pairs: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    distance: float
    how: Literal["sites", "dtw"]


def aligned(first: Sounding, second: Sounding, gauge: str = "affinity", by: Align = "auto") -> Alignment:
    """Pair the sites of two soundings by their names or by dynamic time warping.

    Args:
        first: one network.
        second: another one, or the same with other weights or data.
        gauge: the gauge to compare.
        by: `sites` (the same names in the same order), `dtw`, or `auto`: sites if they are the same.

    Example:
        >>> import torch
        >>> from fathometer import measure
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Tanh())
        >>> sounding = measure(net, torch.randn(50, 4), samples=50)
        >>> found = aligned(sounding, sounding)
        >>> found.how, found.pairs.tolist(), found.distance
        ('sites', [[0, 0], [1, 1]], 0.0)
    """
    check_choice("align", by, Align)
    named = by_name({"first": first, "second": second}, gauge)
    first, second = named.values()
    x, y = signatures(named, gauge).values()
    same = [site.name for site in first.sites] == [site.name for site in second.sites]
    if by == "sites" and not same:
        raise InputError(
            f"expected two soundings of the same sites, got {len(first.sites)} and {len(second.sites)} that "
            "differ; use dtw",
            parameter="align",
        )
    if by == "sites" or (by == "auto" and same):
        pairs = np.repeat(np.arange(len(x))[:, None], 2, axis=1)
        return Alignment(pairs, float(np.linalg.norm(x - y)), "sites")
    path, distance = dtw_path(x, y)
    return Alignment(np.array(path), distance, "dtw")


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


def dtw_matrix(series: Sequence[Numbers]) -> Array:
    """Compute the distances between all series, many pairs at once.

    Every series is compared with all that are not longer, sorted by length, `_PAIRS` at a time.

    Example:
        >>> dtw_matrix([[0, 0], [3, 4], [0]]).tolist()
        [[0.0, 5.0, 0.0], [5.0, 0.0, 5.0], [0.0, 5.0, 0.0]]
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
            found = _one_against_many(arrays[index], padded[:, others], lengths[others])
            matrix[index, order[others]] = matrix[order[others], index] = found
    return matrix


def _one_against_many(x: Array, others: Array, lengths: NDArray[np.int64]) -> Array:
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
