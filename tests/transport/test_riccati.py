"""The equation A Σ_X A = Σ_Y: both roots, the fallbacks, the derivative."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor

from fathometer.errors import NumericalError
from fathometer.transport import decompositions, moments
from fathometer.transport.decompositions import cholesky_factor, eigh, polar_factor, svd
from fathometer.transport.gaussian import linear_part
from fathometer.transport.moments import CovarianceKind
from fathometer.transport.riccati import RootMethod, push_forward, solve_riccati
from tests.data import correlated

METHODS: list[RootMethod] = ["eigh", "polar"]


def spd(batch: int, d: int, condition: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Positive definite matrices and their smallest eigenvalue."""
    generator = torch.Generator().manual_seed(seed)
    basis = torch.linalg.qr(torch.randn(batch, d, d, generator=generator, dtype=torch.float64))[0]
    values = torch.logspace(0, -float(np.log10(condition)), d, dtype=torch.float64)
    return basis * values @ basis.mT, torch.full((batch,), 1 / condition, dtype=torch.float64)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4, 1e8])
@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_the_solution_satisfies_the_equation(d: int, condition: float, method: RootMethod) -> None:
    condition = condition if d > 1 else 1.0
    (x, low_x), (y, low_y) = spd(3, d, condition), spd(3, d, condition, seed=1)
    a = solve_riccati(x, y, low_x, low_y, method=method)
    torch.testing.assert_close(a @ x @ a, y, atol=1e-8, rtol=0)
    torch.testing.assert_close(a, a.mT, atol=1e-10 * float(a.abs().max()), rtol=0)
    assert float(torch.linalg.eigvalsh(a).min()) > 0


@pytest.mark.parametrize("method", METHODS)
def test_the_derivative_is_that_of_finite_differences(method: RootMethod) -> None:
    (x, low), (y, _) = spd(2, 4, 30.0), spd(2, 4, 30.0, seed=1)

    def solve(p: Tensor, q: Tensor) -> Tensor:
        p, q = (p + p.mT) / 2, (q + q.mT) / 2
        return solve_riccati(p, q, low / 2, low / 2, method=method)

    assert torch.autograd.gradcheck(solve, (x.requires_grad_(), y.requires_grad_()))
    equal = torch.eye(4, dtype=torch.float64).repeat(2, 1, 1)  # all eigenvalues are equal
    assert torch.autograd.gradcheck(solve, (equal.requires_grad_(), (2 * equal.detach()).requires_grad_()))


@pytest.mark.parametrize("method", METHODS)
def test_equal_covariances_give_the_identity_however_ill_conditioned(method: RootMethod) -> None:
    x, low = spd(2, 6, 1e13)
    lower = cholesky_factor(x, low)
    a = solve_riccati(x, x, low, low, method=method)
    torch.testing.assert_close(a @ lower, lower, atol=1e-7, rtol=0)


def test_a_covariance_that_rounding_made_indefinite_is_lifted_to_its_floor() -> None:
    rows = torch.randn(3, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    singular = (rows.mT @ rows)[None].expand(2, -1, -1)
    floor = torch.full((2,), 1e-15, dtype=torch.float64)
    lower = cholesky_factor(singular, floor)
    torch.testing.assert_close(lower @ lower.mT, singular, atol=1e-12, rtol=0)
    assert bool((lower == lower.tril()).all())
    with pytest.raises(NumericalError, match="got a singular one"):
        cholesky_factor(torch.diag(torch.tensor([1.0, 0.0])).double()[None], torch.zeros(1).double())


def test_failing_decompositions_fall_back_to_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    square = spd(2, 6, 10.0)[0]
    matrix = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = torch.linalg.eigh(square)[0]

    def fail(*_: object, **__: object) -> None:
        raise torch.linalg.LinAlgError("did not converge")  # type: ignore[attr-defined]

    monkeypatch.setattr(torch.linalg, "eigh", fail)
    monkeypatch.setattr(torch.linalg, "svd", fail)
    values, vectors = eigh(square)
    torch.testing.assert_close(values, expected)
    torch.testing.assert_close(vectors * values[:, None, :] @ vectors.mT, square)
    left, values, right = svd(matrix)
    torch.testing.assert_close(left * values[:, None, :] @ right, matrix)
    with pytest.raises(NumericalError, match="no singular value decomposition of a 5 × 3 matrix"):
        svd(matrix * float("nan"))
    with pytest.raises(NumericalError, match="no eigendecomposition"):
        eigh(square * float("nan"))


def test_a_polar_iteration_that_does_not_converge_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    (x, low_x), (y, low_y) = spd(2, 6, 1e4), spd(2, 6, 1e4, seed=1)
    expected = solve_riccati(x, y, low_x, low_y, method="eigh")
    monkeypatch.setattr(decompositions, "_MAX_STEPS", 2)
    u = polar_factor(cholesky_factor(y, low_y).mT @ cholesky_factor(x, low_x), (low_x * low_y).sqrt())
    assert float((u.mT @ u - torch.eye(6)).abs().max()) > 0.1
    torch.testing.assert_close(solve_riccati(x, y, low_x, low_y, method="polar"), expected)


def test_two_samples_make_the_iteration_fall_back() -> None:
    """U is orthogonal there, but not the polar factor: only the equation itself tells."""
    for seed in range(5):
        x = torch.from_numpy(correlated(2, 3, seed))
        of_x, of_y = moments(x), moments(x.relu() + 0.1 * x)
        inputs = [t[None] for t in (of_x.covariance, of_y.covariance, of_x.floor, of_y.floor)]
        expected = solve_riccati(*inputs, method="eigh")
        torch.testing.assert_close(solve_riccati(*inputs, method="polar"), expected, atol=1e-6, rtol=1e-6)


def test_the_polar_factor_is_scipys() -> None:
    g = torch.randn(4, 9, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    smallest = torch.linalg.svdvals(g)[:, -1] * 0.9
    u = polar_factor(g, smallest)
    for ours, matrix in zip(u, g, strict=True):
        np.testing.assert_allclose(ours, scipy.linalg.polar(matrix.numpy())[0], atol=1e-11)


@pytest.mark.parametrize("rank", [3, 12, 20])
@pytest.mark.parametrize("kind", ["sample", "ledoit-wolf"])
def test_rows_can_be_moved_without_the_map(rank: int, kind: CovarianceKind) -> None:
    generator = torch.Generator().manual_seed(rank)
    x = torch.randn(3, 30, rank, generator=generator, dtype=torch.float64) @ torch.randn(
        3, rank, 20, generator=generator, dtype=torch.float64
    )
    source, target = moments(x, covariance=kind), moments(torch.relu(x), covariance=kind)
    expected = source.rows @ linear_part(source, target)
    moved = push_forward(source.rows, source.covariance, target.covariance, source.floor, target.floor)
    torch.testing.assert_close(moved, expected, rtol=1e-7, atol=1e-7)
