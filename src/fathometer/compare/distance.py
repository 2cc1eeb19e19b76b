"""Distances between signatures: along their sites (dynamic time warping, Euclidean), or as distributions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fathometer.compare.series import as_series, dtw_matrix, dtw_path
from fathometer.compare.soundings import (
    Array,
    Soundings,
    after_sums,
    by_name,
    comparable,
    signatures,
)
from fathometer.errors import InputError, check_choice
from fathometer.results.sounding import Sounding

Metric: TypeAlias = Literal["normalised", "banded", "paper", "euclidean", "wasserstein"]
Align: TypeAlias = Literal["auto", "sites", "dtw"]
Roles: TypeAlias = Mapping[str, NDArray[np.bool_]]
"""Whether the input of each site is a sum, by network."""

DEFAULT_METRIC: Metric = "banded"
"""Chosen by a stated criterion over trained networks: `papers/networks/distances.py`, docs/distances.md."""
BAND = 0.1
"""Of `banded`: how far the relative depths of two sites may be apart, from 0 to 1."""


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances between networks.

    Attributes:
        names: the networks.
        matrix: `[networks, networks]`, symmetric, 0 on the diagonal.
        metric: how they were computed, see `distances`.
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
    def label(self) -> str:
        """The metric for the axis of a figure."""
        return {"paper": "DTW (sum)", "normalised": "DTW", "banded": "banded DTW"}.get(
            self.metric, self.metric
        )

    @property
    def condensed(self) -> Array:
        """The upper triangle row by row, as SciPy's clustering expects it."""
        return self.matrix[np.triu_indices(len(self.names), 1)]


def distances(
    soundings: Soundings,
    gauge: str = "affinity",
    metric: Metric = DEFAULT_METRIC,
    *,
    allow_mismatch: bool = False,
) -> Distances:
    """Compute the distances between the signatures of networks.

    Args:
        soundings: by name, or a list.
        gauge: any gauge that all of them hold.
        metric: `normalised` (dynamic time warping, DTW: the root mean square difference along the best
            alignment, whatever the depth), `banded` (the same, and only sites are paired whose relative
            depths differ by at most 0.1), `paper` (DTW with the sum instead of the mean, so that deep
            networks are far from all others; Figures 5B, 14, 17), `euclidean` (‖x − y‖, equal lengths only),
            or `wasserstein` (W₁ between the distributions of scores, whatever their order). In the first two,
            sites after a residual sum are paired with each other alone, where both networks have some.
        allow_mismatch: also compare soundings that differ in data, reduction or samples, with a warning.

    Example:
        >>> import torch
        >>> from fathometer import measure
        >>> nets = {name: torch.nn.Sequential(torch.nn.Linear(4, 4), layer)
        ...         for name, layer in (("a", torch.nn.ReLU()), ("b", torch.nn.Tanh()))}
        >>> data = torch.randn(100, 4)
        >>> found = distances({name: measure(net, data, samples=50) for name, net in nets.items()})
        >>> found.names, found.metric, found.matrix.shape
        (('a', 'b'), 'banded', (2, 2))
    """
    return known_distances(comparable(soundings, gauge, allow_mismatch=allow_mismatch), gauge, metric)


def known_distances(named: Mapping[str, Sounding], gauge: str, metric: Metric = DEFAULT_METRIC) -> Distances:
    """Compute the distances of soundings that are known to be comparable."""
    return signature_distances(signatures(named, gauge), metric, gauge=gauge, roles=after_sums(named, gauge))


def signature_distances(
    series: Mapping[str, Array],
    metric: Metric = DEFAULT_METRIC,
    *,
    gauge: str = "affinity",
    roles: Roles | None = None,
) -> Distances:
    """Compute the distances between arrays, given by name.

    Args:
        series: the arrays.
        metric: see `distances`.
        gauge: what they are, for the result.
        roles: for each array, which of its entries are of sites after a residual sum; none if left out.

    Example:
        >>> signature_distances({"a": [0, 1], "b": [1, 1], "c": [1, 0]}, "wasserstein").matrix.tolist()
        [[0.0, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.0]]
        >>> signature_distances({"a": [0, 0, 0, 0], "b": [1, 1]}).matrix.tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """
    check_choice("metric", metric, Metric)
    names = tuple(series)
    arrays = [as_series(values, name) for name, values in series.items()]
    if metric == "paper":
        matrix = dtw_matrix(arrays)
    elif metric in ("normalised", "banded"):
        marks = [
            np.zeros(len(array), bool) if roles is None else roles[name]
            for name, array in zip(names, arrays, strict=True)
        ]
        matrix = _by_role(arrays, marks, BAND if metric == "banded" else None)
    else:
        matrix = _euclidean(names, arrays) if metric == "euclidean" else _wasserstein(arrays)
    return Distances(names, matrix, metric, gauge)


def _by_role(arrays: list[Array], marks: list[NDArray[np.bool_]], band: float | None) -> Array:
    """Compute normalised distances; marked and other sites are aligned apart where both networks have both.

    The squared distances of the two parts are averaged, weighted by their numbers of sites.
    """
    matrix = dtw_matrix(arrays, normalise=True, band=band)
    both = [index for index, mark in enumerate(marks) if mark.any() and not mark.all()]
    if len(both) < 2:
        return matrix
    squares = np.zeros((len(both), len(both)))
    for of_sum in (False, True):
        parts = [arrays[index][marks[index] == of_sum] for index in both]
        sizes = np.array([len(part) for part in parts])
        squares += dtw_matrix(parts, normalise=True, band=band) ** 2 * (sizes[:, None] + sizes)
    sizes = np.array([len(arrays[index]) for index in both])
    matrix[np.ix_(both, both)] = np.sqrt(squares / (sizes[:, None] + sizes))
    return matrix


def _euclidean(names: tuple[str, ...], arrays: list[Array]) -> Array:
    for name, array in zip(names, arrays, strict=True):
        if len(array) != len(arrays[0]):
            raise InputError(
                f"euclidean needs signatures of the same length, but {names[0]} has {len(arrays[0])} sites "
                f"and {name} {len(array)}; use normalised or wasserstein",
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
