from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from ckatorch.core import cka_base
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from fathometer import r2, r2_heldout
from fathometer.errors import InputError
from fathometer.gauges import cka, cka_debiased
from tests.data import Matrix, correlated, relu


def heldout_by_scikit_learn(x: Matrix, y: Matrix, folds: int, seed: int) -> float:
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed)).numpy()
    missed = total = 0.0
    for fold in range(folds):
        held = order[fold::folds]
        rest = np.setdiff1d(order, held)
        predicted = LinearRegression().fit(x[rest], y[rest]).predict(x[held])
        missed += ((y[held] - predicted) ** 2).sum()
        total += ((y[held] - y[rest].mean(0)) ** 2).sum()
    return 1 - missed / total


@pytest.mark.parametrize(
    ("n", "d"),
    [(80, 5), (80, 1), (50, 35), (50, 38), (50, 44), (50, 48), (50, 49), (50, 50), (30, 50), (30, 90)],
)
@pytest.mark.parametrize("folds", [4, 7])
def test_both_r2_are_scikit_learns(n: int, d: int, folds: int) -> None:
    x = correlated(n, d)
    y = relu(x)
    expected = heldout_by_scikit_learn(x, y, folds, seed=3)
    assert r2_heldout(x, y, folds=folds, seed=3).item() == pytest.approx(expected, rel=1e-8, abs=1e-8)
    fitted = LinearRegression().fit(x, y).predict(x)
    expected = r2_score(y, fitted, multioutput="variance_weighted")
    assert r2(x, y).item() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(("n", "d"), [(80, 12), (40, 30), (20, 30)])
@pytest.mark.parametrize(
    "kind", ["repeated feature", "repeated sample", "rank one", "tiny feature", "outlier"]
)
def test_r2_of_samples_that_determine_no_fit(n: int, d: int, kind: str) -> None:
    x = correlated(n, d)
    if kind == "repeated feature":
        x[:, 3] = x[:, 1] - 2 * x[:, 2]
    elif kind == "repeated sample":
        x[5:9] = x[:4]
    elif kind == "rank one":
        x = x[:, :1] * x[:1]
    elif kind == "tiny feature":
        x[:, 0] *= 1e-20
    else:
        x[7] *= 1e3
    y = np.tanh(x[:, ::-1] / np.abs(x).mean()) + 0.1 * np.random.default_rng(1).normal(size=x.shape)
    fitted = LinearRegression().fit(x, y).predict(x)
    expected = r2_score(y, fitted, multioutput="variance_weighted")
    assert r2(x, y).item() == pytest.approx(expected, abs=1e-8)
    assert r2_heldout(x, y).item() == pytest.approx(heldout_by_scikit_learn(x, y, 5, 0), rel=1e-6)


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


@pytest.mark.parametrize(("n", "d"), [(80, 5), (40, 1), (30, 30), (20, 50)])
def test_cka_is_the_dense_formula(n: int, d: int) -> None:
    x = correlated(n, d)
    y = relu(x)
    hub = np.eye(n) - 1 / n
    k, h = hub @ x @ x.T @ hub, hub @ y @ y.T @ hub
    expected = np.trace(k @ h) / np.sqrt(np.trace(k @ k) * np.trace(h @ h))
    assert cka(x, y).item() == pytest.approx(expected, rel=1e-12)


def test_cka_is_one_under_rotation_and_shift_and_less_under_a_shear() -> None:
    x = correlated(50, 6)
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    assert cka(x, 3 * x @ rotation + 5).item() == pytest.approx(1, abs=1e-12)
    assert cka(x @ rotation, relu(x)).item() == pytest.approx(cka(x, relu(x)).item(), rel=1e-12)
    assert cka(x, x * np.arange(6)).item() < 0.999


def test_cka_of_what_does_not_vary() -> None:
    x, still = correlated(50, 6), np.full((50, 6), 0.1)
    flicker = np.where(x > 0, 1, np.nextafter(1, 0))
    assert cka(x, still).item() == cka(still, still).item() == cka(x, flicker).item() == 1
    assert cka(still, x).item() == cka(flicker, x).item() == 0


def debiased_hsic(x: Matrix, y: Matrix) -> float:
    """The estimator of Song et al., with n × n matrices of zero diagonal."""
    n = len(x)
    k, h = x @ x.T, y @ y.T
    np.fill_diagonal(k, 0)
    np.fill_diagonal(h, 0)
    total = np.trace(k @ h) + k.sum() * h.sum() / ((n - 1) * (n - 2)) - 2 * (k @ h).sum() / (n - 2)
    return float(total / (n * (n - 3)))


@pytest.mark.parametrize(("n", "d"), [(80, 5), (40, 1), (30, 30), (20, 50), (4, 3)])
def test_debiased_cka_is_the_dense_formula_and_that_of_ckatorch(n: int, d: int) -> None:
    x = correlated(n, d)
    y = relu(x)
    expected = debiased_hsic(x, y) / np.sqrt(debiased_hsic(x, x) * debiased_hsic(y, y))
    assert cka_debiased(x, y).item() == pytest.approx(expected, rel=1e-8)
    theirs = cka_base(torch.from_numpy(x), torch.from_numpy(y), unbiased=True)
    assert cka_debiased(x, y).item() == pytest.approx(theirs.item(), rel=1e-8)


def test_debiased_cka_of_independent_samples_is_about_zero() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 300, 32, 64))
    assert cka(x, y).min() > 0.6
    assert abs(cka_debiased(x, y).mean()) < 0.01


def test_debiased_cka_where_it_is_not_defined() -> None:
    x, still = correlated(50, 6), np.full((50, 6), 0.1)
    assert cka_debiased(x, x @ np.linalg.qr(correlated(6, 6))[0]).item() == pytest.approx(1)
    assert cka_debiased(x, still).item() == cka_debiased(still, still).item() == 1
    assert cka_debiased(still, x).item() == 0
    assert cka_debiased(x[:3], x[:3]).isnan()
    assert cka_debiased(np.eye(9), correlated(9, 9)).isnan()


def test_folds() -> None:
    few = correlated(3, 2)
    assert r2_heldout(few, relu(few)) == r2_heldout(few, relu(few), folds=3)
    assert r2_heldout(few, relu(few)) == r2_heldout(few, relu(few), folds=np.int64(3))  # type: ignore[arg-type]
    for folds in (7, 1, 2.5):
        with pytest.raises(InputError, match="folds: expected a whole number from 2 to 6"):
            r2_heldout(correlated(6, 2), correlated(6, 2), folds=folds)  # type: ignore[arg-type]
    wide = np.random.default_rng(0).normal(size=(10, 100_000))  # features × features would be 80 GB
    assert r2_heldout(wide, relu(wide)).item() < 0.5


def test_heldout_r2_where_all_that_varies_is_held_out_at_once() -> None:
    x = np.zeros((20, 3))
    x[3, 0], x[::2, 1] = 5.0, 5e-324
    total = 5**2 + 16 * (5 / 16) ** 2  # around the mean of the other folds, which is 0 or 5/16
    assert r2_heldout(x, relu(x)).item() == pytest.approx(1 - 5**2 / total)


@pytest.mark.parametrize("d", [60, 256])
def test_rounding_adds_no_features(d: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 12, generator=generator, dtype=torch.float64) @ torch.randn(
        12, d, generator=generator, dtype=torch.float64
    )
    rounded = x.float()
    for gauge in (r2, r2_heldout):
        exact, found = gauge(x, x.relu()), gauge(rounded, rounded.relu())
        assert float(found) == pytest.approx(float(exact), abs=1e-4)
