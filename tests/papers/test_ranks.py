from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, spearmanr

from papers.ranks import auc, orders, pair_chance, rank_trend, spearman

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


def test_many_values_have_some_orders() -> None:
    found = rank_trend(range(12), range(12))
    assert found.value == pytest.approx(1)
    assert found.p == 1 / 50_000
    assert len(orders(12, 1000)) == 1000
    assert (np.sort(orders(12, 1000), axis=1) == np.arange(12)).all()


def test_chance_of_labels() -> None:
    first, second = np.triu_indices(8, 1)
    neighbours = second - first == 1
    assert pair_chance("aaaabbbb", neighbours).value == 6
    assert pair_chance("aaaabbbb", neighbours).p < 0.05
    assert pair_chance("abababab", neighbours).p == 1
