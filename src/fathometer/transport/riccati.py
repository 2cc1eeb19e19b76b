"""The positive semi-definite solution A of A Σ_X A = Σ_Y, and its derivative.

This one equation is the whole of affine optimal transport: A is the linear part of the optimal map
(Eq. 4), and Tr(A Σ_X) = Tr (Σ_X Σ_Y)^½ gives the Bures distance. Matrices are `[batch, d, d]`, float64.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import scipy.linalg
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fathometer.errors import NumericalError
from fathometer.transport.polar import polar_factor

RootMethod: TypeAlias = Literal["eigh", "polar"]


def solve_riccati(
    source: Tensor,
    target: Tensor,
    source_floor: Tensor,
    target_floor: Tensor,
    *,
    method: RootMethod | None = None,
) -> Tensor:
    """A ⪰ 0 with A Σ_X A = Σ_Y, differentiable in both.

    With Σ_X = L Lᵀ and P = (Lᵀ Σ_Y L)^½, A = L⁻ᵀ P L⁻¹: the map of Eq. 4 with one root instead of
    three. P comes from an eigendecomposition (`"eigh"`, the default on a CPU) or from the polar
    factor of chol(Σ_Y)ᵀ L by Newton-Schulz (`"polar"`, the default elsewhere), which falls back to
    the first where it does not converge.

    Args:
        source: Σ_X, `[batch, d, d]`.
        target: Σ_Y, `[batch, d, d]`.
        source_floor: a number, `[batch]`, that Σ_X − floor · I is known to stay above zero with.
        target_floor: the same of Σ_Y.
        method: how to take the root.
    """
    chosen = method or ("eigh" if source.device.type == "cpu" else "polar")
    solution: Tensor = _Riccati.apply(  # type: ignore[no-untyped-call]
        source, target, source_floor, target_floor, chosen
    )
    return solution


class _Riccati(torch.autograd.Function):
    """Forward: the root. Backward: one Lyapunov equation, solved in the eigenbasis of P.

    From dA Σ_X A + A Σ_X dA = dΣ_Y − A dΣ_X A follow, for the gradient Ā of A,
    Σ̄_Y = L W Lᵀ and Σ̄_X = −A Σ̄_Y A, where P W + W P = L⁻¹ Ā L⁻ᵀ. The eigenvalues of P enter as sums,
    never as differences, so equal ones do no harm.
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
        lower = cholesky_factor(source, source_floor)
        if method == "polar":
            solution = _solve_by_polar(lower, target, source_floor, target_floor)
        else:
            solution = _solve_by_eigh(lower, target)
        ctx.save_for_backward(lower, solution)
        return solution

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        lower, solution = ctx.saved_tensors
        values, vectors = eigh(lower.mT @ solution @ lower)  # P
        sums = values[:, :, None] + values[:, None, :]
        half = torch.linalg.solve_triangular(lower, (gradient + gradient.mT) / 2, upper=False)
        inner = torch.linalg.solve_triangular(lower, half.mT, upper=False)
        w = vectors @ ((vectors.mT @ inner @ vectors) / sums) @ vectors.mT
        of_target = lower @ w @ lower.mT
        return -solution @ of_target @ solution, of_target, None, None, None


def cholesky_factor(matrix: Tensor, floor: Tensor) -> Tensor:
    """L with L Lᵀ = Σ. Where rounding has made Σ indefinite, its eigenvalues are lifted to `floor`."""
    lower, info = torch.linalg.cholesky_ex(matrix)
    failed = info.nonzero().flatten()
    if failed.numel():
        if not bool((floor[failed] > 0).all()):
            raise NumericalError(
                "the covariance is singular and nothing lifts it: expected a ridge above 0; "
                "the default, or covariance='ledoit-wolf', will do"
            )
        values, vectors = eigh(matrix[failed])
        half = vectors * values.clamp(min=floor[failed][:, None]).sqrt()[:, None, :]
        triangle = torch.linalg.qr(half.mT, mode="r")[1]
        signs = triangle.diagonal(dim1=-2, dim2=-1).sign()
        lower = lower.index_copy(0, failed, (signs[..., None] * triangle).mT)
    return lower


def eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors; by SciPy's plain QR iteration where the fast routine fails."""
    try:
        values, vectors = torch.linalg.eigh(matrix)
        if bool(values.isfinite().all()):
            return values, vectors
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        pass  # the slower routine below decides
    try:
        pairs = [scipy.linalg.eigh(m, driver="ev") for m in matrix.detach().cpu().numpy()]
    except (scipy.linalg.LinAlgError, ValueError) as error:
        raise NumericalError(
            f"no eigendecomposition of a {matrix.shape[-1]} × {matrix.shape[-1]} covariance: {error}; "
            "look for values whose squares overflow float64, or raise the ridge"
        ) from error
    values = torch.stack([torch.from_numpy(w) for w, _ in pairs])
    vectors = torch.stack([torch.from_numpy(v) for _, v in pairs])
    return values.to(matrix), vectors.to(matrix)


def _solve_by_eigh(lower: Tensor, target: Tensor) -> Tensor:
    """With Lᵀ Σ_Y L = V p² Vᵀ and B = L⁻ᵀ V p^½, A = B Bᵀ."""
    squares, vectors = eigh(_congruence(lower, target))
    quarter = squares.clamp(min=0).sqrt().sqrt()
    b = torch.linalg.solve_triangular(lower.mT, vectors.mul_(quarter[:, None, :]), upper=True)
    return b @ b.mT


def _solve_by_polar(lower: Tensor, target: Tensor, source_floor: Tensor, target_floor: Tensor) -> Tensor:
    """With G = chol(Σ_Y)ᵀ L = U P, A = L⁻ᵀ P L⁻¹."""
    g = cholesky_factor(target, target_floor).mT @ lower
    u, converged = polar_factor(g, (source_floor * target_floor).sqrt())
    root = u.mT @ g
    half = torch.linalg.solve_triangular(lower.mT, (root + root.mT) / 2, upper=True)
    solution = torch.linalg.solve_triangular(lower.mT, half.mT, upper=True)
    failed = (~converged).nonzero().flatten()
    if failed.numel():
        solution = solution.index_copy(0, failed, _solve_by_eigh(lower[failed], target[failed]))
    return solution


def _congruence(lower: Tensor, matrix: Tensor) -> Tensor:
    """The lower triangle of Lᵀ M L, leaving out the zero quarter of L and the quarter above it."""
    h = lower.shape[-1] // 2
    l_left, l_corner = lower[:, :, :h], lower[:, h:, h:]
    left, corner = matrix @ l_left, matrix[:, h:, h:] @ l_corner
    result = torch.zeros_like(matrix)
    result[:, :h, :h] = l_left.mT @ left
    result[:, h:, :h] = l_corner.mT @ left[:, h:]
    result[:, h:, h:] = l_corner.mT @ corner
    return result
