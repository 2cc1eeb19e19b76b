from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from fathometer.errors import InputError, NumericalError
from fathometer.gauges.dimensions import cost_of_identity, nonnegativity, stable_rank, stable_rank_of
from tests.data import Matrix, correlated, relu

SHAPES = [(80, 5), (40, 1), (30, 30), (20, 50), (2, 3)]


def dense_cost(x: Matrix, y: Matrix, gamma: float) -> float:
    """Tr A (K + γI)⁻¹ Aᵀ through the singular values of Y."""
    left, s, _ = scipy.linalg.svd(y)
    energy = ((left.T @ x) ** 2).sum(1)
    eigenvalues = np.pad(s**2, (0, len(x) - len(s)))
    return float((energy / (eigenvalues + gamma * s[0] ** 2)).sum())


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_stable_rank_is_the_ratio_of_norms(n: int, d: int) -> None:
    x = correlated(n, d)
    found = stable_rank(x, relu(x))
    for name, side in (("x", x), ("y", relu(x))):
        expected = np.linalg.norm(side, "nuc") ** 2 / np.linalg.norm(side) ** 2
        assert found[name].item() == pytest.approx(expected, rel=1e-9)


def test_stable_rank_in_closed_form() -> None:
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(9, 9)))[0]
    assert stable_rank_of(rotation).item() == pytest.approx(9)
    assert stable_rank_of(rotation[:, :4]).item() == pytest.approx(4)
    assert stable_rank_of(np.outer(rotation[0], rotation[1])).item() == pytest.approx(1, abs=1e-12)
    assert stable_rank_of(np.diag([3.0, 1.0, 0.0])).item() == pytest.approx(1.6)
    assert stable_rank_of(np.ones((1, 7))).item() == pytest.approx(1)
    assert stable_rank_of(np.zeros((5, 3))).item() == 0


@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize("gamma", [1.0, 1e-3, 1e-10])
def test_cost_of_identity_is_the_dense_formula(n: int, d: int, gamma: float) -> None:
    x = correlated(n, d)
    positive = np.abs(x)
    for a, b in ((x, relu(x)), (x, np.tanh(x)), (x, positive), (positive, positive)):
        found, expected = cost_of_identity(a, b, gamma=gamma).item(), dense_cost(a, b, gamma)
        assert found == pytest.approx(expected, rel=1e-5 if gamma < 1e-6 else 1e-9)


@pytest.mark.parametrize(("n", "d", "rank"), [(60, 12, 3), (20, 30, 4), (15, 15, 1)])
def test_cost_of_identity_of_nonnegative_inputs_is_about_the_rank(n: int, d: int, rank: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.random((n, rank)) @ rng.random((rank, d))
    s = np.linalg.svd(x, compute_uv=False)
    exact = (s**2 / (s**2 + 1e-3 * s[0] ** 2)).sum()
    assert cost_of_identity(x, relu(x)).item() == pytest.approx(exact, rel=1e-9)
    assert cost_of_identity(x, relu(x), gamma=1e-9).item() == pytest.approx(rank, rel=1e-3)


@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize("gamma", [1e-1, 1e-3, 1e-8])
def test_proposition_1(n: int, d: int, gamma: float) -> None:
    for seed in range(5):
        x = correlated(n, d, seed)
        x[0, 0] = 1.0  # else all may be negative, and the cost infinite
        y = relu(x)
        ridge = gamma * np.linalg.norm(y, 2) ** 2
        bound = np.linalg.norm(x, "nuc") ** 2 / (np.linalg.norm(y) ** 2 + ridge * n)
        assert cost_of_identity(x, y, gamma=gamma).item() >= bound * (1 - 1e-9)


def test_zeros_and_squares_that_leave_float64() -> None:
    x, nothing = correlated(10, 3), np.zeros((10, 3))
    assert cost_of_identity(x, nothing).item() == np.inf
    assert cost_of_identity(nothing, x).item() == cost_of_identity(nothing, nothing).item() == 0
    for gauge in (cost_of_identity, stable_rank):
        with pytest.raises(InputError, match=r"expected a spread between .*; rescale it first"):
            gauge(1e200 * x, 1e200 * relu(x))


def test_gamma_must_lift_the_kernel() -> None:
    x = np.ones((30, 40))
    for gamma in (0.0, -1.0, np.inf, np.nan, "1", True):
        with pytest.raises(InputError, match="gamma: expected a finite number > 0"):
            cost_of_identity(x, x, gamma=gamma)  # type: ignore[arg-type]
    with pytest.raises(NumericalError, match="raise gamma"):
        cost_of_identity(x, x, gamma=1e-30)


def test_nonnegativity() -> None:
    x = np.array([[3.0, -1.0], [0.0, 1.0]])
    found = nonnegativity(x, relu(x))
    assert found["entries"].item() == 0.75
    assert found["energy"].item() == pytest.approx(10 / 11)
    for side, expected in ((np.zeros((4, 2)), 1), (np.ones((4, 2)), 1)):
        assert {value.item() for value in nonnegativity(side, side).values()} == {expected}
    assert {value.item() for value in nonnegativity(-np.ones((4, 2)), x[:1].repeat(4, 0)).values()} == {0}
