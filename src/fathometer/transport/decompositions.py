"""Matrix decompositions with a slower routine behind each, and an error behind that.

Matrices are `[batch, d, d]`, float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import scipy  # which imports its parts when they are used
import torch
from torch import Tensor

from fathometer.errors import NumericalError
from fathometer.threads import torch_threads

_MAX_STEPS = 60
_MAX_SERIAL_SIZE = 1024  # LAPACK is slower with several threads: at 512, two take three times as long


def cholesky_factor(matrix: Tensor, floor: Tensor, *, lift: bool = False) -> Tensor:
    """Return L with L Lᵀ = Σ. Where rounding has made Σ indefinite, its eigenvalues are raised to `floor`.

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
            raise singular_error()
        values, vectors = eigh(matrix[failed])
        half = vectors * values.clamp(min=floor[failed][:, None]).sqrt()[:, None, :]
        triangle = torch.linalg.qr(half.mT, mode="r")[1]
        signs = triangle.diagonal(dim1=-2, dim2=-1).sign()
        lower = lower.index_copy(0, failed, (signs[..., None] * triangle).mT)
    return lower


def eigvalsh(matrix: Tensor) -> Tensor:
    """Return eigenvalues in rising order, by `eigh` where the fast routine fails."""
    serial = matrix.device.type == "cpu" and matrix.shape[-1] <= _MAX_SERIAL_SIZE
    try:
        with torch_threads(1) if serial else nullcontext():
            return torch.linalg.eigvalsh(matrix)
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        return eigh(matrix.reshape(-1, *matrix.shape[-2:]))[0].reshape(matrix.shape[:-1])


def eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return eigenvalues and eigenvectors; by SciPy's plain QR iteration where the fast routine fails."""
    try:
        values, vectors = torch.linalg.eigh(matrix)
        if bool(values.isfinite().all()):
            return values, vectors
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        pass  # the slower routine decides
    values, vectors = _by_scipy("eigendecomposition", partial(scipy.linalg.eigh, driver="ev"), matrix)
    return values, vectors


def svd(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the thin singular value decomposition U, s, Vᵀ; by SciPy's `gesvd` if the fast routine fails."""
    try:
        left, values, right = torch.linalg.svd(matrix, full_matrices=False)
        if bool(values.isfinite().all()):
            return left, values, right
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        pass  # the slower routine decides
    solve = partial(scipy.linalg.svd, full_matrices=False, lapack_driver="gesvd")
    left, values, right = _by_scipy("singular value decomposition", solve, matrix)
    return left, values, right


def polar_factor(g: Tensor, smallest: Tensor) -> Tensor:
    """Return U of the polar decomposition G = U P, P = (GᵀG)^½, by matrix products alone, fast on a GPU.

    Newton-Schulz iteration U ← ½ ρ U (3I − ρ² UᵀU), with the scaling ρ² = 3 / (1 + ℓ + ℓ²) that is
    optimal among cubics when all singular values lie in [ℓ, 1] (Chen and Chow, 2014): small ones
    grow by 2.6 a step rather than 1.5. With ℓ known beforehand the steps are counted on the host
    and the device never waits. Where G is nearly singular, rounding may make U wrong: check the result
    that it is used for.

    Args:
        g: square matrices `[batch, d, d]`.
        smallest: a lower bound, `[batch]`, on their singular values.
    """
    largest = torch.minimum(
        torch.linalg.matrix_norm(g),
        (torch.linalg.matrix_norm(g, 1) * torch.linalg.matrix_norm(g, math.inf)).sqrt(),
    )
    u = g / largest[:, None, None]
    for a, b in _steps(float((smallest / largest).min())):
        u = torch.baddbmm(u, u, u.mT @ u, beta=a, alpha=b)
    return u


def _steps(low: float) -> list[tuple[float, float]]:
    """Return (a, b) of each step U ← a U + b U UᵀU that takes singular values in [low, 1] to 1."""
    steps: list[tuple[float, float]] = []
    while low < 1 - 1e-8 and len(steps) < _MAX_STEPS:
        rho = math.sqrt(3 / (1 + low + low * low))
        a, b = 1.5 * rho, -0.5 * rho**3
        steps.append((a, b))
        low = low * (a + b * low * low)
    return [*steps, (1.5, -0.5)]  # once more: the error of 1e-8 is squared


def singular_error() -> NumericalError:
    """Return the error for a covariance without an inverse."""
    return NumericalError(
        "expected a covariance that can be inverted, got a singular one; use a ridge above 0 "
        "(the default is), or covariance='ledoit-wolf'"
    )


def _by_scipy(what: str, solve: Callable[[Any], tuple[Any, ...]], matrix: Tensor) -> list[Tensor]:
    """Decompose each matrix of a batch by a routine of SciPy."""
    try:
        items = [solve(one) for one in matrix.detach().cpu().numpy()]
    except (scipy.linalg.LinAlgError, ValueError) as error:
        rows, columns = matrix.shape[-2:]
        raise NumericalError(
            f"no {what} of a {rows} × {columns} matrix ({error}); "
            "look for values whose squares overflow float64, or raise the ridge"
        ) from error
    parts = zip(*items, strict=True)
    return [torch.stack([torch.from_numpy(part) for part in each]).to(matrix) for each in parts]
