"""Distances between soundings: by the order of their scores, or by the scores alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fathometer.compare.gathering import Array, Soundings, comparable, signatures
from fathometer.compare.series import as_series
from fathometer.compare.warping import dtw_matrix
from fathometer.errors import InputError

Metric: TypeAlias = Literal["dtw", "euclidean", "wasserstein"]


@dataclass(frozen=True, eq=False)
class Distances:
    """How far apart networks are.

    Attributes:
        names: of the networks.
        matrix: `[networks, networks]`, symmetric, 0 on the diagonal.
        metric: `dtw`, `euclidean` or `wasserstein`.
        gauge: what was compared along depth.
    """

    names: tuple[str, ...]
    matrix: NDArray[np.float64]
    metric: Metric
    gauge: str

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64)
        count = len(self.names)
        if matrix.shape != (count, count):
            raise InputError(f"matrix: expected {count} × {count} for {count} names, got {matrix.shape}")
        if not np.isfinite(matrix).all() or (matrix < 0).any():
            raise InputError("matrix: expected finite distances ≥ 0")
        if (matrix != matrix.T).any() or np.diagonal(matrix).any():
            raise InputError("matrix: expected a symmetric matrix with 0 on the diagonal")
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)

    @property
    def frame(self) -> pd.DataFrame:
        """The matrix with its names on both sides."""
        return pd.DataFrame(self.matrix, index=list(self.names), columns=list(self.names))

    @property
    def condensed(self) -> NDArray[np.float64]:
        """The upper triangle row by row, as SciPy's clustering takes it."""
        return self.matrix[np.triu_indices(len(self.names), 1)]


def distances(
    soundings: Soundings, gauge: str = "affinity", metric: Metric = "dtw", *, anyway: bool = False
) -> Distances:
    """Distances between the signatures of networks (Figures 5B, 14, 17).

    Args:
        soundings: by name, or a list.
        gauge: any that all of them hold.
        metric: `dtw` (dynamic time warping, as the paper: any lengths), `euclidean` (‖x − y‖, equal lengths
            only), or `wasserstein` (W₁ between the distributions of scores: the order of sites is forgotten).
        anyway: compare what differs in data, reduction or samples all the same, with a warning.

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
        signatures(comparable(soundings, gauge, anyway=anyway), gauge), metric, gauge=gauge
    )


def signature_distances(
    series: Mapping[str, Array], metric: Metric = "dtw", *, gauge: str = "affinity"
) -> Distances:
    """The same between arrays by name.

    Example:
        >>> signature_distances({"a": [0, 1], "b": [1, 1], "c": [1, 0]}, "wasserstein").matrix.tolist()
        [[0.0, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.0]]
    """
    if metric not in get_args(Metric):
        raise InputError(f"metric: expected one of {', '.join(get_args(Metric))}, got {metric!r}")
    names = tuple(series)
    arrays = [as_series(values, name) for name, values in series.items()]
    matrix = dtw_matrix(arrays) if metric == "dtw" else _MATRICES[metric](names, arrays)
    return Distances(names, matrix, metric, gauge)


def _euclidean(names: tuple[str, ...], arrays: list[Array]) -> Array:
    for name, array in zip(names, arrays, strict=True):
        if len(array) != len(arrays[0]):
            raise InputError(
                f"euclidean: expected signatures of one length, but {names[0]} has {len(arrays[0])} sites "
                f"and {name} {len(array)}; use the metric dtw, or wasserstein"
            )
    stacked = np.array(arrays)
    matrix = np.zeros((len(names), len(names)))
    for place, row in enumerate(stacked):
        matrix[place] = np.sqrt(((stacked - row) ** 2).sum(axis=1))
    return matrix


def _wasserstein(names: tuple[str, ...], arrays: list[Array]) -> Array:
    from scipy.stats import wasserstein_distance

    matrix = np.zeros((len(names), len(names)))
    for i, j in combinations(range(len(names)), 2):
        matrix[i, j] = matrix[j, i] = wasserstein_distance(arrays[i], arrays[j])
    return matrix


_MATRICES = {"euclidean": _euclidean, "wasserstein": _wasserstein}
