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
    """Coordinates of both samples in an orthonormal basis of their span: 2n of them, or, for x, n.

    The basis starts with the span of x, in which alone the first n coordinates of x differ from 0: the
    triangular factor of a QR decomposition holds them, and the basis itself is never formed.

    With gradients it is, and held fixed, which is exact: a function of both samples that rotations and
    reflections leave alone does not change to first order when a row moves out of the span, since the
    reflected move gives the same value.
    """
    if torch.is_grad_enabled() and (x.requires_grad or y.requires_grad):
        basis = span_basis(x, y)
        return x @ basis, y @ basis
    n = x.shape[-2]
    triangle = torch.linalg.qr(torch.cat((x, y), dim=-2).mT, mode="r")[1]
    return triangle[..., :n, :n].mT, triangle[..., n:].mT
