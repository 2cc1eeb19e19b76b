"""Which site of one sounding answers to which of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from fathometer.compare.gathering import Array, signatures
from fathometer.compare.warping import dtw_path
from fathometer.errors import InputError
from fathometer.results.sounding import Sounding

Align: TypeAlias = Literal["auto", "sites", "dtw"]


@dataclass(frozen=True, eq=False)
class Alignment:
    """Pairs of sites, in order of depth.

    Attributes:
        pairs: `[pairs, 2]`, places in the first and in the second sounding.
        values: `[pairs, 2]`, the gauge there.
        distance: sqrt( Σ (xᵢ − yⱼ)² ) over the pairs: DTW's, or the Euclidean one of equal sites.
        how: `sites`, one to one by name, or `dtw`.
    """

    pairs: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    values: Array
    distance: float
    how: Literal["sites", "dtw"]

    @property
    def difference(self) -> Array:
        """The second less the first, along the pairs."""
        return np.asarray(self.values[:, 1] - self.values[:, 0])


def aligned(first: Sounding, second: Sounding, gauge: str = "affinity", by: Align = "auto") -> Alignment:
    """Two soundings side by side: by the names of their sites, or by dynamic time warping.

    Args:
        first: one network.
        second: another one, or the same with other weights or data.
        gauge: what to compare.
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
    x, y = signatures({"first": first, "second": second}, gauge).values()
    same = [site.name for site in first.sites] == [site.name for site in second.sites]
    if by == "sites" and not same:
        raise InputError(
            f"sites: expected two soundings of the same sites, got {len(first.sites)} and "
            f"{len(second.sites)} that differ; align them by dtw"
        )
    if by == "sites" or (by == "auto" and same):
        pairs = np.repeat(np.arange(len(x))[:, None], 2, axis=1)
        return Alignment(pairs, np.c_[x, y], float(np.linalg.norm(x - y)), "sites")
    if by not in ("auto", "dtw"):
        raise InputError(f"align: expected auto, sites or dtw, got {by!r}")
    path, distance = dtw_path(x, y)
    pairs = np.array(path)
    return Alignment(pairs, np.c_[x[pairs[:, 0]], y[pairs[:, 1]]], distance, "dtw")
