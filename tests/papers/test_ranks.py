from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, spearmanr

from papers.ranks import auc, label_chance, rank_trend, spearman

RNG = np.random.default_rng(7)


def test_rank_correlations_and_areas() -> None:
    assert spearman([1, 2, 3], [10, 100, 1000]) == pytest.approx(1)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 1, 1], [3, 2, 1]) == 0
    x, y = RNG.integers(0, 9, (2, 40))  # with ties
    assert spearman(x, y) == pytest.approx(spearmanr(x, y).statistic)
    assert auc([3, 1, 2], [True, False, False]) == 1
    assert auc([1, 1], [True, False]) == 0.5
    assert np.isnan(auc([1, 2], [True, True]))
    high, low = x + 1, y[:25]
    u = mannwhitneyu(high, low).statistic
    assert auc([*high, *low], [True] * 40 + [False] * 25) == pytest.approx(u / (40 * 25))


def test_a_rank_trend_is_spearmans_with_all_orders() -> None:
    x, y = [2012, 2014, 2014, 2016, 2018], [0.1, 0.3, 0.2, 0.2, 0.5]
    found = rank_trend(x, y)
    assert found.value == pytest.approx(spearmanr(x, y).statistic)
    orders = [spearmanr(x, order).statistic for order in permutations(y)]
    assert found.p == pytest.approx(np.mean(np.array(orders) >= found.value - 1e-9))
    assert rank_trend(x, y[::-1]).p > 0.5
    assert rank_trend([1, 2, 3], [1, 1, 1]) == (0, 1)


def test_chance_of_labels() -> None:
    labels = list("aaaabbbb")

    def neighbours(order: list[object]) -> float:
        return float(sum(a == b for a, b in pairwise(order)))

    assert label_chance(labels, neighbours).p < 0.05
    assert label_chance(list("abababab"), neighbours).p == 1
