"""The span of two samples, and their coordinates in it.

Two centred samples of n rows in d > 2n features live in at most 2n dimensions. Distances, Gaussians
and the affine map between them are the same there, up to a multiple of the identity outside.
"""

from __future__ import annotations

import torch
from torch import Tensor


def span_basis(x: Tensor, y: Tensor) -> Tensor:
    """An orthonormal basis `[..., d, 2n]` of a space that holds the rows of both samples.

    Householder reflections: the columns are orthonormal and reproduce the rows even where the rows
    depend on one another.
    """
    with torch.no_grad():
        basis: Tensor = torch.linalg.qr(torch.cat((x, y), dim=-2).mT)[0]
    return basis


def span_coordinates(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Coordinates `[..., n, 2n]` of both samples in an orthonormal basis of their span.

    Gradients: a function of both samples that rotations leave alone does not change to first order
    when a row moves out of the span (the reflected move gives the same value), so the basis may be
    held fixed and the gradient is exact. Without gradients the triangular factor of the QR
    decomposition already holds the coordinates, and the basis is never formed.
    """
    if torch.is_grad_enabled() and (x.requires_grad or y.requires_grad):
        basis = span_basis(x, y)
        return x @ basis, y @ basis
    n = x.shape[-2]
    triangle = torch.linalg.qr(torch.cat((x, y), dim=-2).mT, mode="r")[1]
    return triangle[..., :n].mT, triangle[..., n:].mT
