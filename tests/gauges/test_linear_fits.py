from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from ckatorch.core import cka_base
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import LeaveOneOut

from fathometer import r2, r2_heldout
from fathometer.errors import InputError
from fathometer.gauges import carriers, choose_gauges, cka, cka_debiased, r2_trimmed, read_gauges
from tests.data import Matrix, correlated, relu


def ridges_of(x: Matrix) -> list[float]:
    """The ridges that `r2_heldout` chooses from, for samples in float64."""
    energies = np.sort(((x - x.mean(0)) ** 2).sum(1))
    least = 1e4 * np.finfo(float).eps * energies.sum()
    return [max(ratio * energies[(len(x) - 1) // 2], least) for ratio in (3, 0.3, 0.03, 0)]


def left_out_by_scikit_learn(x: Matrix, y: Matrix, ridge: float) -> float:
    missed = total = 0.0
    for train, held in LeaveOneOut().split(x):
        predicted = Ridge(ridge, solver="svd").fit(x[train], y[train]).predict(x[held])
        missed += ((y[held] - predicted) ** 2).sum()
        total += ((y[held] - y[train].mean(0)) ** 2).sum()
    return max(0.0, 1 - missed / total)


@pytest.mark.parametrize(
    ("n", "d"), [(80, 5), (80, 1), (50, 35), (50, 47), (50, 48), (50, 49), (50, 50), (30, 50), (30, 90)]
)
@pytest.mark.parametrize("width", [0, 3, 60])
def test_both_r2_are_scikit_learns(n: int, d: int, width: int) -> None:
    x = correlated(n, d)
    y = relu(x) @ np.random.default_rng(1).normal(size=(d, width)) if width else relu(x)
    every = [left_out_by_scikit_learn(x, y, ridge) for ridge in ridges_of(x)]
    found = r2_heldout(x, y).item()
    assert found == pytest.approx(max(every), abs=1e-6)
    fitted = LinearRegression().fit(x, y).predict(x)
    expected = r2_score(y, fitted, multioutput="variance_weighted")
    assert r2(x, y).item() == pytest.approx(expected, abs=1e-8)


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
    ridges = ridges_of(x)
    fitted = Ridge(ridges[-1], solver="svd").fit(x, y).predict(x)
    expected = r2_score(y, fitted, multioutput="variance_weighted")
    assert r2(x, y).item() == pytest.approx(expected, abs=1e-4)
    expected = max(left_out_by_scikit_learn(x, y, ridge) for ridge in ridges)
    assert r2_heldout(x, y).item() == pytest.approx(expected, abs=1e-6)


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


def test_heldout_r2_of_very_wide_samples() -> None:
    wide = np.random.default_rng(0).normal(size=(10, 100_000))  # features × features would be 80 GB
    assert r2_heldout(wide, relu(wide)).item() < 0.5


@pytest.mark.parametrize(("n", "d"), [(400, 40), (120, 100), (60, 100)])
def test_noise_is_not_fitted(n: int, d: int) -> None:
    x, noise = np.random.default_rng(0).normal(size=(2, n, d))
    assert r2_heldout(x, noise).item() < 0.02
    if n > d:
        strong = r2_heldout(x, 10 * x[:, :1] + noise).item()  # all outputs copy one feature
        assert strong == pytest.approx(100 / 101, abs=0.01 if n > 2 * d else 0.3)


def test_a_few_large_samples_decide_r2_but_not_the_trimmed_one() -> None:
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(2, 1000, 20))
    x[:10] += 3
    y[:10] = 1e3  # which a line predicts, while the others are noise
    assert r2_heldout(x, y).item() > 0.5
    assert r2_trimmed(x, y).item() < 0.02
    kept = np.argsort(((y - y.mean(0)) ** 2).sum(1))[:980]
    assert r2_trimmed(x, y).item() == pytest.approx(r2_heldout(x[kept], y[kept]).item(), abs=1e-12)
    shares = carriers(x, y)
    assert shares["y"].item() > 0.98
    energies = ((x - x.mean(0)) ** 2).sum(1)
    assert shares["x"].item() == pytest.approx(np.sort(energies)[-10:].sum() / energies.sum())
    assert carriers(np.ones((50, 3)), y[:50])["x"].item() == 0


def test_unequal_widths() -> None:
    x = correlated(60, 5)
    y = x @ np.random.default_rng(0).normal(size=(5, 9)) + 1
    for gauge in (r2, r2_heldout, r2_trimmed):
        assert gauge(x, y).item() == pytest.approx(1, abs=1e-8)
    pairs = {"wider": (torch.from_numpy(x), torch.from_numpy(y))}
    (row,) = read_gauges(choose_gauges("affinity,r2,carriers"), pairs)
    assert set(row) == {"r2", "carriers_x", "carriers_y"}
    with pytest.raises(InputError, match="expected x and y with as many samples"):
        r2(x[1:], y)


@pytest.mark.parametrize("d", [60, 256])
def test_rounding_adds_no_features(d: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 12, generator=generator, dtype=torch.float64) @ torch.randn(
        12, d, generator=generator, dtype=torch.float64
    )
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 0.02)):
        rounded = x.to(dtype)
        for gauge in (r2, r2_heldout, r2_trimmed):
            exact, found = gauge(x, x.relu()), gauge(rounded, rounded.relu())
            assert float(found) == pytest.approx(float(exact), abs=tolerance)
