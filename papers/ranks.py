"""Statistics of ranks, and how often chance does as well: labels or values in another order."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata


class Chance(NamedTuple):
    """A statistic, and the share of orders in which it is at least as large."""

    value: float
    p: float  # one-sided; of all orders if they are few, else of some, one of which does as well


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Compute Spearman's rank correlation; 0 if one side does not vary.

    Example:
        >>> round(spearman([1, 2, 3, 4], [1, 3, 2, 4]), 3), spearman([1, 2], [5, 5])
        (0.8, 0.0)
    """
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def auc(score: ArrayLike, positive: ArrayLike) -> float:
    """Compute the probability that a positive has a higher score than a negative; NaN without both kinds.

    Example:
        >>> auc([1, 2, 3, 4], [False, True, False, True])
        0.75
    """
    ranks, mask = rankdata(np.asarray(score, dtype=float)), np.asarray(positive, dtype=bool)
    ones, zeros = int(mask.sum()), int((~mask).sum())
    if not ones or not zeros:
        return float("nan")
    return float((ranks[mask].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def rank_trend(x: Sequence[float], y: Sequence[float]) -> Chance:
    """Compute Spearman's rank correlation, and how often another order of y has one as large.

    Example:
        >>> found = rank_trend([1, 2, 3, 4, 5], [0.1, 0.2, 0.4, 0.5, 0.9])
        >>> round(found.value, 3), round(found.p * 120)
        (1.0, 1)
    """
    first, second = _standardised(x), _standardised(y)
    value = float(first @ second / len(first))
    others = _correlations(tuple(sorted(first)), tuple(sorted(second)))
    return Chance(value, float((others >= value - 1e-12).mean()))


def pair_chance(labels: Sequence[Hashable], weights: ArrayLike) -> Chance:
    """Sum weights over the pairs with equal labels, and say how often labels in another order have as much.

    Pairs are in the order of SciPy's condensed distances: (0, 1), (0, 2) …

    Example:
        >>> pair_chance("aab", [1.0, 0.0, 0.0]).value
        1.0
    """
    sums = _equal_pairs(tuple(pd.factorize(np.array(list(labels)))[0])) @ np.asarray(weights, dtype=float)
    return Chance(float(sums[0]), float((sums >= sums[0] - 1e-9).mean()))


@lru_cache
def _correlations(x: tuple[float, ...], y: tuple[float, ...]) -> NDArray[np.float64]:
    return np.array(y)[orders(len(y))] @ np.array(x) / len(x)


@lru_cache
def _equal_pairs(codes: tuple[int, ...]) -> NDArray[np.float64]:
    """Return which pairs have equal labels, `[orders, pairs]`; the first order is the given one."""
    ordered = np.array(codes)[orders(len(codes), 1000)]
    first, second = np.triu_indices(len(codes), 1)
    return (ordered[:, first] == ordered[:, second]).astype(float)


def _standardised(values: Sequence[float]) -> NDArray[np.float64]:
    ranks = rankdata(values)
    spread = ranks.std()
    return (ranks - ranks.mean()) / spread if spread else np.zeros(len(ranks))


@lru_cache
def orders(count: int, draws: int = 50_000) -> NDArray[np.intp]:
    """Return all orders of so many values, or random ones if they are too many; the first is 0, 1, 2 …."""
    if math.factorial(count) <= draws:
        return np.array(list(permutations(range(count))))
    every = np.tile(np.arange(count), (draws, 1))
    np.random.default_rng(0).permuted(every[1:], axis=1, out=every[1:])
    return every
