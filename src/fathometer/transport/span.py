"""The span of two samples, and their coordinates in it.

Two centred samples of n rows in d > 2n features live in at most 2n dimensions. Distances, Gaussians
and the affine map between them are the same there, up to a multiple of the identity outside.
"""

from __future__ import annotations

import torch
from torch import Tensor

_ROUNDING = 4 * torch.finfo(torch.float64).eps


def span_basis(x: Tensor, y: Tensor) -> Tensor:
    """An orthonormal basis `[..., d, 2n]` of a space that holds the rows of both samples.

    Householder reflections: the columns are orthonormal and reproduce the rows even where the rows
    depend on one another.
    """
    return _basis(torch.cat((x, y), dim=-2))


def span_coordinates(both: Tensor, *, shrunk: bool = False) -> tuple[Tensor, Tensor]:
    """Coordinates of x and y, stacked as `[..., 2n, d]`, in an orthonormal basis of their span.

    The basis starts with the span of x, so that only the first n of the 2n coordinates of x differ from
    0; those n are returned, `[..., n, n]`, and all of y, `[..., n, 2n]`. The triangular factor of a QR
    decomposition holds them; the basis itself is never formed.

    With `shrunk`, the factor comes from the Gram matrix of all rows, which takes far less time on a GPU. It
    is exact to the rounding of that matrix: as good where covariances are lifted by far more than that, as
    Ledoit and Wolf's are, but not where plain ones are to be inverted.

    With gradients it is (and x has all its 2n coordinates), but held fixed. That is exact: a function
    of both samples that rotations and reflections leave alone does not change to first order when a
    row moves out of the span, since the reflected move gives the same value.
    """
    n = both.shape[-2] // 2
    if torch.is_grad_enabled() and both.requires_grad:
        inside = both @ _basis(both)
        return inside[..., :n, :], inside[..., n:, :]
    lower = _root_of_gram(both) if shrunk else None
    if lower is None:
        lower = torch.linalg.qr(both.mT, mode="r")[1].mT
    return lower[..., :n, :n], lower[..., n:, :]


def _root_of_gram(both: Tensor) -> Tensor | None:
    """L with L Lᵀ = B Bᵀ, to the rounding of each half, or nothing where that fails."""
    halves = both.unflatten(-2, (2, -1))
    size = torch.linalg.matrix_norm(halves)[..., None, None]
    size = torch.where(size > 0, size, 1.0)
    unit = (halves / size).flatten(-3, -2)
    gram = unit @ unit.mT
    gram.diagonal(dim1=-2, dim2=-1).add_(_ROUNDING)
    lower, info = torch.linalg.cholesky_ex(gram)
    if bool(info.any()):
        return None
    return (lower.unflatten(-2, (2, -1)) * size).flatten(-3, -2)


@torch.no_grad()
def _basis(both: Tensor) -> Tensor:
    basis: Tensor = torch.linalg.qr(both.mT)[0]
    return basis
