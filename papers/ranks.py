"""Statistics of ranks, and how often chance does as well: labels or values in another order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

_EXACT = 8  # values up to which all orders are tried: 40,320
_ORDERS = 10_000


class Chance(NamedTuple):
    """A statistic, and the share of orders in which it is at least as large."""

    value: float
    p: float  # one-sided; of all orders for up to eight values, else of 10,000, including the given one


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
    orders = _orders(len(second))
    found = second[orders] @ first / len(first)
    value = float(first @ second / len(first))
    return Chance(value, float((found >= value - 1e-12).mean()))


def label_chance(labels: Sequence[object], statistic: Callable[[list[object]], float]) -> Chance:
    """Compute a statistic of labels, and how often the labels in another order have one as large.

    Example:
        >>> label_chance(list("aab"), lambda of: float(of[0] == of[1])).value
        1.0
    """
    value = statistic(list(labels))
    found = [statistic([labels[place] for place in order]) for order in _orders(len(labels), 1000)]
    return Chance(value, float(np.mean(np.array(found) >= value - 1e-12)))


def _standardised(values: Sequence[float]) -> NDArray[np.float64]:
    ranks = rankdata(values)
    spread = ranks.std()
    return (ranks - ranks.mean()) / spread if spread else np.zeros(len(ranks))


def _orders(count: int, draws: int = _ORDERS) -> NDArray[np.intp]:
    if count <= _EXACT and draws >= _ORDERS:
        return np.array(list(permutations(range(count))))
    generator = np.random.default_rng(0)
    return np.array([np.arange(count), *(generator.permutation(count) for _ in range(draws - 1))])
