from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from fathometer import r2, r2_heldout
from fathometer.errors import InputError
from tests.data import correlated, relu


@pytest.mark.parametrize(("n", "d"), [(80, 5), (40, 1), (60, 50)])
def test_in_sample_r2_is_scikit_learns(n: int, d: int) -> None:
    x = correlated(n, d)
    y = relu(x)
    fitted = LinearRegression().fit(x, y).predict(x)
    expected = r2_score(y, fitted, multioutput="variance_weighted")
    assert r2(x, y).item() == pytest.approx(expected, abs=1e-10)


def test_in_sample_r2_is_one_when_samples_are_few() -> None:
    x = correlated(10, 20)
    y = np.random.default_rng(0).normal(size=x.shape)
    assert r2(x, y).item() == pytest.approx(1, abs=1e-10)
    assert r2_heldout(x, y).item() < 0.2


@pytest.mark.parametrize(("n", "d"), [(80, 5), (30, 50)])
def test_heldout_r2_is_scikit_learns_over_the_same_folds(n: int, d: int) -> None:
    x = correlated(n, d)
    y = relu(x)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(3)).numpy()
    missed = total = 0.0
    for fold in range(4):
        held = order[fold::4]
        rest = np.setdiff1d(order, held)
        predicted = LinearRegression().fit(x[rest], y[rest]).predict(x[held])
        missed += ((y[held] - predicted) ** 2).sum()
        total += ((y[held] - y[rest].mean(0)) ** 2).sum()
    assert r2_heldout(x, y, folds=4, seed=3).item() == pytest.approx(1 - missed / total, abs=1e-8)


@pytest.mark.parametrize("gauge", [r2, r2_heldout])
def test_affine_and_constant_outputs(gauge: Callable[..., torch.Tensor]) -> None:
    x = correlated(60, 5)
    matrix = np.random.default_rng(0).normal(size=(5, 5))
    assert gauge(x, x @ matrix + 3).item() == pytest.approx(1, abs=1e-10)
    for constant in (0.0, 0.1, 1.0):
        assert gauge(x, np.full_like(x, constant)).item() == 1.0
    assert gauge(np.ones_like(x), x).item() == pytest.approx(0, abs=1e-12)
    for scale in (1e-200, 1e200):
        with pytest.raises(InputError, match="y: expected a spread"):
            gauge(x, scale * x)


@pytest.mark.parametrize("gauge", [r2, r2_heldout])
def test_a_batch_is_its_items(gauge: Callable[..., torch.Tensor]) -> None:
    x = np.stack([correlated(30, 4, seed) for seed in range(3)])
    alone = torch.stack([gauge(item, relu(item)) for item in x])
    torch.testing.assert_close(gauge(x, relu(x)), alone)


def test_bad_folds() -> None:
    x = correlated(6, 2)
    for folds in (7, 1, 2.5):
        with pytest.raises(InputError, match="folds: expected 2 to 6"):
            r2_heldout(x, x, folds=folds)  # type: ignore[arg-type]


def test_wide_pairs_need_no_square_matrix() -> None:
    x = np.random.default_rng(0).normal(size=(10, 100_000))  # 80 GB if they did
    assert r2_heldout(x, relu(x)).item() < 0.5
