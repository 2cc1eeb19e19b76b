"""Matrix decompositions that do not give up: a slower routine behind each, and an error behind that.

Matrices are `[batch, d, d]`, float64.
"""

from __future__ import annotations

import scipy.linalg
import torch
from torch import Tensor

from fathometer.errors import NumericalError


def cholesky_factor(matrix: Tensor, floor: Tensor, *, lift: bool = False) -> Tensor:
    """L with L Lᵀ = Σ. Where rounding has made Σ indefinite, its eigenvalues are lifted to `floor`.

    With `lift`, rounding is first added to the diagonal, which is much faster on a GPU.
    """
    lower, info = torch.linalg.cholesky_ex(matrix)
    failed = info.nonzero().flatten()
    if failed.numel() and lift:
        again = matrix[failed]
        diagonal = again.diagonal(dim1=-2, dim2=-1)
        rounding = again.shape[-1] * torch.finfo(again.dtype).eps
        diagonal.add_(rounding * diagonal.amax(-1, keepdim=True))
        lifted, info = torch.linalg.cholesky_ex(again)
        lower = lower.index_copy(0, failed, lifted)
        failed = failed[info.nonzero().flatten()]
    if failed.numel():
        if not bool((floor[failed] > 0).all()):
            raise singular()
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
        pass  # the slower routine decides
    try:
        pairs = [scipy.linalg.eigh(m, driver="ev") for m in matrix.detach().cpu().numpy()]
    except (scipy.linalg.LinAlgError, ValueError) as error:
        raise _failure("eigendecomposition", matrix, error) from error
    values, vectors = (torch.stack([torch.from_numpy(p[i]) for p in pairs]) for i in (0, 1))
    return values.to(matrix), vectors.to(matrix)


def svd(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The thin singular value decomposition U, s, Vᵀ; by SciPy's `gesvd` where the fast routine fails."""
    try:
        left, values, right = torch.linalg.svd(matrix, full_matrices=False)
        if bool(values.isfinite().all()):
            return left, values, right
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        pass  # the slower routine decides
    flat = matrix.detach().reshape(-1, *matrix.shape[-2:]).cpu().numpy()
    try:
        parts = [scipy.linalg.svd(m, full_matrices=False, lapack_driver="gesvd") for m in flat]
    except (scipy.linalg.LinAlgError, ValueError) as error:
        raise _failure("singular value decomposition", matrix, error) from error
    left, values, right = (torch.stack([torch.from_numpy(p[i]) for p in parts]) for i in (0, 1, 2))
    batch = matrix.shape[:-2]
    return (
        left.reshape(*batch, *left.shape[1:]).to(matrix),
        values.reshape(*batch, *values.shape[1:]).to(matrix),
        right.reshape(*batch, *right.shape[1:]).to(matrix),
    )


def singular() -> NumericalError:
    """The error for a covariance without an inverse."""
    return NumericalError(
        "the covariance is singular and nothing lifts it: expected a ridge above 0; "
        "the default, or covariance='ledoit-wolf', will do"
    )


def _failure(what: str, matrix: Tensor, error: Exception) -> NumericalError:
    rows, columns = matrix.shape[-2:]
    return NumericalError(
        f"no {what} of a {rows} × {columns} matrix ({error}); "
        "look for values whose squares overflow float64, or raise the ridge"
    )
