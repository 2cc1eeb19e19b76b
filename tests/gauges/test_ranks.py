from __future__ import annotations

import numpy as np
import pytest
import skdim.id
import torch
from reptrix.alpha import get_alpha
from reptrix.rankme import get_rank
from scipy.stats import entropy

from fathometer.gauges import alpha, effective_rank, participation_ratio, rankme
from fathometer.gauges.spectrum import without_rounding
from tests.data import Matrix, correlated, relu

SHAPES = [(80, 5), (40, 1), (30, 30), (20, 50), (2, 3)]


def singular_values(a: Matrix) -> Matrix:
    return np.linalg.svd(a, compute_uv=False).astype(np.float64)


def centred(a: Matrix) -> Matrix:
    return a - a.mean(0)


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_ranks_are_those_of_other_libraries(n: int, d: int) -> None:
    x = correlated(n, d)
    y = relu(x)
    effective, ratio, rank_me = (gauge(x, y) for gauge in (effective_rank, participation_ratio, rankme))
    for name, side in (("x", x), ("y", y)):
        expected = np.exp(entropy(singular_values(centred(side))))
        assert effective[name].item() == pytest.approx(expected, rel=1e-6)
        assert rank_me[name].item() == pytest.approx(get_rank(singular_values(side)), rel=1e-6)
        if d > 1:
            expected = skdim.id.lPCA(ver="participation_ratio").fit(side).dimension_
            assert ratio[name].item() == pytest.approx(expected, rel=1e-6)


def test_ranks_in_closed_form() -> None:
    spread = np.repeat(np.concatenate([np.eye(6), -np.eye(6)]), 3, 0) * ([3.0] * 4 + [0.0] * 2) + 7
    nothing = np.zeros_like(spread)
    for gauge in (effective_rank, participation_ratio):
        assert gauge(spread, nothing + 0.1)["x"].item() == pytest.approx(4)
        assert gauge(spread, nothing + 0.1)["y"].item() == 0
    uneven = spread.copy()
    uneven[:, 0] *= 2  # shares 2/5, 1/5, 1/5, 1/5 of singular values, 4/7, 1/7, 1/7, 1/7 of variances
    assert effective_rank(uneven, spread)["x"].item() == pytest.approx(2.5**0.4 * 5**0.6)
    assert participation_ratio(uneven, spread)["x"].item() == pytest.approx(7**2 / 19)
    largest = rankme(np.eye(200), np.eye(200))["x"].item()
    assert 200 < largest < 200.1
    assert rankme(spread, nothing)["y"].item() == 0


@pytest.mark.parametrize(("n", "d"), [(300, 120), (60, 300), (150, 64), (40, 25)])
def test_alpha_is_that_of_reptrix(n: int, d: int) -> None:
    x = correlated(n, d)
    y = relu(x)
    found = alpha(x, y)
    for name, side in (("x", x), ("y", y)):
        points = np.arange(10, min(100, np.linalg.matrix_rank(centred(side))))
        expected = get_alpha(torch.from_numpy(side), fit_range=points)[0]
        assert found[name].item() == pytest.approx(expected, rel=1e-6)


def test_alpha_of_a_power_law_and_of_too_few_eigenvalues() -> None:
    waves = np.cos(np.arange(400)[:, None] * np.arange(1, 131) * np.pi / 200)
    x = waves * np.arange(1, 131) ** -0.5
    assert alpha(x, x**3)["x"].item() == pytest.approx(1, rel=1e-9)
    few = x.copy()
    few[:, 13:] = 0
    found = alpha(few, few[:, :1] * np.ones(130))
    assert found["x"].item() == pytest.approx(1, rel=1e-9)
    few[:, 12] = 0
    found = alpha(few, np.full_like(few, 0.1))
    assert np.isnan([value.item() for value in found.values()]).all()


def test_only_rounding_counts_as_zero() -> None:
    assert without_rounding(torch.tensor([-1e-20, 1e-20, 1.0]).double()).tolist() == [0, 0, 1]
    assert without_rounding(torch.full((3,), torch.nan)).isnan().all()  # of samples whose squares overflow
