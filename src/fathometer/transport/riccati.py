"""Solve A Σ_X A = Σ_Y for a positive semi-definite A, with its derivative.

Affine optimal transport is this one equation: A is the linear part of the optimal map (Eq. 4), and
Tr(A Σ_X) = Tr (Σ_X Σ_Y)^½ gives the Bures distance. Matrices are `[batch, d, d]`, float64.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from fathometer.errors import NumericalError
from fathometer.transport.decompositions import cholesky_factor, eigh, polar_factor, svd

RootMethod: TypeAlias = Literal["eigh", "polar"]

_MAX_RESIDUAL = 1e-9  # of A Σ_X A − Σ_Y, that an iteration may leave
_MIN_EIGENVALUE_RATIO = 1e-11  # that an eigendecomposition in float64 is trusted with: scores change by 1e-12


def solve_riccati(
    source: Tensor,
    target: Tensor,
    source_floor: Tensor,
    target_floor: Tensor,
    *,
    method: RootMethod | None = None,
) -> Tensor:
    """Return A ⪰ 0 with A Σ_X A = Σ_Y, differentiable in both.

    With Σ_X = L Lᵀ and P = (Lᵀ Σ_Y L)^½, A = L⁻ᵀ P L⁻¹: the map of Eq. 4 with one root instead of
    three. P comes from an eigendecomposition (`"eigh"`, the default on a CPU) or from the polar
    factor of chol(Σ_Y)ᵀ L by Newton-Schulz (`"polar"`, the default on a GPU), which falls back to
    the first where A does not solve the equation.

    Args:
        source: Σ_X, `[batch, d, d]`; or its first k rows and columns, where the others are those of
            `source_floor` · I. Then the first k rows of A are returned, by `"eigh"` and without gradients.
        target: Σ_Y, `[batch, d, d]`.
        source_floor: a number, `[batch]`, that Σ_X − floor · I is known to stay above zero with.
        target_floor: the same of Σ_Y.
        method: how to take the root.
    """
    block = source.shape[-1] < target.shape[-1]
    chosen = "eigh" if block else method or ("polar" if source.is_cuda else "eigh")
    solution: Tensor = _Riccati.apply(  # type: ignore[no-untyped-call]
        source, target, source_floor, target_floor, chosen
    )
    return solution


@torch.no_grad()
def push_forward(
    rows: Tensor, source: Tensor, target: Tensor, source_floor: Tensor, target_floor: Tensor
) -> Tensor:
    """Return rows of X, moved by A: `rows @ A`, by products and Cholesky factors alone.

    With Σ_X = L Lᵀ, Σ_Y = K Kᵀ and Kᵀ L = U P, A x = K U L⁻¹ x. As L⁻¹ x has unit variance, nothing is
    amplified by small eigenvalues of Σ_X, which A itself would be. Where U is off, A is formed by
    eigenvalues.
    """
    both = cholesky_factor(torch.cat((source, target)), torch.cat((source_floor, target_floor)), lift=True)
    lower, of_target = both.chunk(2)
    g = of_target.mT @ lower
    u = polar_factor(g, (source_floor * target_floor).sqrt())
    moved = (of_target @ (u @ torch.linalg.solve_triangular(lower, rows.mT, upper=False))).mT
    p = u.mT @ g
    asymmetry = torch.linalg.matrix_norm(p - p.mT) + torch.linalg.matrix_norm(u @ p - g)
    failed = (~(asymmetry <= _MAX_RESIDUAL * torch.linalg.matrix_norm(g))).nonzero().flatten()  # also for NaN
    if failed.numel():
        inputs = (t[failed] for t in (source, target, source_floor, target_floor))
        moved = moved.index_copy(0, failed, rows[failed] @ _solve_by_eigh(*inputs)[1])
    return moved


class _Riccati(torch.autograd.Function):
    """Forward: the root. Backward: one Lyapunov equation, solved in the eigenbasis of P.

    From dA Σ_X A + A Σ_X dA = dΣ_Y − A dΣ_X A follow, for the gradient Ā of A,
    Σ̄_Y = L W Lᵀ and Σ̄_X = −A Σ̄_Y A, where P W + W P = L⁻¹ Ā L⁻ᵀ. The eigenvalues of P enter as sums,
    never as differences, so equal ones are no problem.
    """

    @staticmethod
    def forward(
        ctx: Any,
        source: Tensor,
        target: Tensor,
        source_floor: Tensor,
        target_floor: Tensor,
        method: RootMethod,
    ) -> Tensor:
        solve = _solve_by_polar if method == "polar" else _solve_by_eigh
        lower, solution = solve(source, target, source_floor, target_floor)
        ctx.save_for_backward(lower, solution)
        return solution

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        lower, solution = ctx.saved_tensors
        with torch.no_grad():
            of_source, of_target = _Riccati._first_derivatives(gradient, lower, solution)
        if torch.is_grad_enabled():  # create_graph=True
            of_source, of_target = _RefuseSecondDerivatives.apply(  # type: ignore[no-untyped-call]
                of_source, of_target, solution
            )
        return of_source, of_target, None, None, None

    @staticmethod
    def _first_derivatives(gradient: Tensor, lower: Tensor, solution: Tensor) -> tuple[Tensor, Tensor]:
        values, vectors = eigh(lower.mT @ solution @ lower)  # P
        sums = values[:, :, None] + values[:, None, :]
        half = torch.linalg.solve_triangular(lower, (gradient + gradient.mT) / 2, upper=False)
        inner = torch.linalg.solve_triangular(lower, half.mT, upper=False)
        w = vectors @ ((vectors.mT @ inner @ vectors) / sums) @ vectors.mT
        of_target = lower @ w @ lower.mT
        return -solution @ of_target @ solution, of_target


class _RefuseSecondDerivatives(torch.autograd.Function):
    """Passes derivatives on, and refuses to be differentiated: L and P carry no graph for that."""

    @staticmethod
    def forward(ctx: Any, of_source: Tensor, of_target: Tensor, solution: Tensor) -> tuple[Tensor, Tensor]:
        del ctx, solution
        return of_source.view_as(of_source), of_target.view_as(of_target)

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> None:
        del ctx
        raise NumericalError(
            "expected first derivatives of the affine map only, got a second derivative; "
            "detach the gradient before it is differentiated"
        )


def _solve_by_eigh(
    source: Tensor, target: Tensor, source_floor: Tensor, target_floor: Tensor
) -> tuple[Tensor, Tensor]:
    """Return L, and A = B Bᵀ with B = L⁻ᵀ V p^½, where Lᵀ Σ_Y L = V p² Vᵀ.

    Where the p² spread so far that the smallest are lost in rounding, the product is not formed and p comes
    from a singular value decomposition.
    """
    k = source.shape[-1]
    lower = cholesky_factor(source, source_floor)
    rest = source_floor.sqrt()[:, None, None]
    squares, vectors = eigh(_congruence(lower, rest, target))
    b = vectors.mul_(squares.clamp(min=0).sqrt().sqrt()[:, None, :])
    b[:, :k] = torch.linalg.solve_triangular(lower.mT, b[:, :k], upper=True)
    b[:, k:] /= rest
    solution = b[:, :k] @ b.mT
    ill_conditioned = (squares[:, 0] < _MIN_EIGENVALUE_RATIO * squares[:, -1]).nonzero().flatten()
    if ill_conditioned.numel():
        exact = _solve_by_svd(
            lower[ill_conditioned],
            rest[ill_conditioned],
            target[ill_conditioned],
            target_floor[ill_conditioned],
        )
        solution = solution.index_copy(0, ill_conditioned, exact)
    return lower, solution


def _solve_by_svd(lower: Tensor, rest: Tensor, target: Tensor, target_floor: Tensor) -> Tensor:
    k, m = lower.shape[-1], target.shape[-1]
    whole = rest * torch.eye(m, dtype=lower.dtype, device=lower.device)
    whole[:, :k, :k] = lower
    of_target = cholesky_factor(target, target_floor)
    left, _, right = svd(of_target.mT @ whole)
    return _from_polar(whole, of_target, left @ right)[:, :k]


def _solve_by_polar(
    source: Tensor, target: Tensor, source_floor: Tensor, target_floor: Tensor
) -> tuple[Tensor, Tensor]:
    both = cholesky_factor(torch.cat((source, target)), torch.cat((source_floor, target_floor)))
    lower, of_target = both.chunk(2)
    u = polar_factor(of_target.mT @ lower, (source_floor * target_floor).sqrt())
    solution = _from_polar(lower, of_target, u)
    residual = torch.linalg.matrix_norm(solution @ source @ solution - target)
    solved = residual <= _MAX_RESIDUAL * torch.linalg.matrix_norm(target)  # False for NaN
    failed = (~solved).nonzero().flatten()
    if failed.numel():
        inputs = (t[failed] for t in (source, target, source_floor, target_floor))
        solution = solution.index_copy(0, failed, _solve_by_eigh(*inputs)[1])
    return lower, solution


def _from_polar(lower: Tensor, of_target: Tensor, u: Tensor) -> Tensor:
    """Return A = L⁻ᵀ P L⁻¹ = L⁻ᵀ (K U)ᵀ, where Σ_Y = K Kᵀ and Kᵀ L = U P."""
    solution = torch.linalg.solve_triangular(lower.mT, (of_target @ u).mT, upper=True)
    return (solution + solution.mT) / 2


def _congruence(lower: Tensor, rest: Tensor, matrix: Tensor) -> Tensor:
    """Return the lower triangle of Lᵀ M L, where L is `lower`, followed by `rest` on the diagonal.

    In two halves, so as to leave out the zero quarter of L and the quarter above the diagonal.
    """
    k, m = lower.shape[-1], matrix.shape[-1]
    h = k // 2 if k == m else k
    left = matrix[:, :, :k] @ lower[:, :, :h]
    result = torch.zeros_like(matrix)
    result[:, :h, :h] = lower[:, :, :h].mT @ left[:, :k]
    if k == m:
        corner = lower[:, h:, h:]
        result[:, h:, :h] = corner.mT @ left[:, h:]
        result[:, h:, h:] = corner.mT @ (matrix[:, h:, h:] @ corner)
    else:
        result[:, h:, :h] = rest * left[:, h:]
        result[:, h:, h:] = rest.square() * matrix[:, h:, h:]
    return result
