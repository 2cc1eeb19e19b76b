"""Gram matrices and their eigenvalues. Samples are `[..., n, d]`, float64."""

from __future__ import annotations

import torch
from torch import Tensor

from fathometer.transport.decompositions import eigvalsh

_MIN_SIZE_FOR_STRIPS = 512
_DOUBLINGS = 24


def smaller_gram(a: Tensor) -> Tensor:
    """Return AAᵀ or AᵀA, whichever is smaller: they share all eigenvalues but zeros."""
    return gram_of_rows(a if a.shape[-2] <= a.shape[-1] else a.mT)


def gram_of_rows(a: Tensor) -> Tensor:
    """Return AAᵀ; a large one on a CPU in strips up to its diagonal, which takes 5/8 of the time."""
    size = a.shape[-2]
    if a.is_cuda or size < _MIN_SIZE_FOR_STRIPS or a.requires_grad:
        return a @ a.mT
    found = a.new_empty(*a.shape[:-2], size, size)
    for start in range(0, size, -(-size // 4)):
        stop = min(start + -(-size // 4), size)
        strip = a[..., start:stop, :] @ a[..., :stop, :].mT
        found[..., start:stop, :stop] = strip
        found[..., :start, start:stop] = strip[..., :start].mT
    return found


def largest_eigenvalue(gram: Tensor) -> Tensor:
    """Compute ‖G‖ of each Gram matrix: its eigenvalue, or on a GPU (Tr G^m)^(1/m) for an m of 2²⁴.

    The latter is too large by a factor k^(1/m) at most, where k is the size of G.
    """
    if not gram.is_cuda:
        return eigenvalues(gram)[..., -1]
    logarithm, power = torch.zeros_like(gram[..., 0, 0]), gram
    for doubling in range(_DOUBLINGS):
        trace = power.diagonal(dim1=-2, dim2=-1).sum(-1)
        logarithm = logarithm + trace.log() / 2**doubling  # -inf for a matrix of zeros
        power = power / torch.where(trace > 0, trace, 1.0)[..., None, None]
        power = power @ power
    return logarithm.exp()


def eigenvalues(gram: Tensor) -> Tensor:
    """Compute the eigenvalues of a Gram matrix, in rising order; those that are rounding are 0."""
    return without_rounding(eigvalsh(gram))


def without_rounding(values: Tensor) -> Tensor:
    """Return eigenvalues, which rise along the last axis, with 0 for those that are rounding; NaN stays."""
    floor = values[..., -1:] * values.shape[-1] * torch.finfo(values.dtype).eps
    return torch.where(values <= floor, 0.0, values)


def to_unit(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return each item divided by its largest entry, and that entry: squares then stay within float64."""
    size = torch.linalg.vector_norm(a, torch.inf, dim=(-2, -1))
    return a / torch.where(size > 0, size, 1.0)[..., None, None], size


def squares(a: Tensor) -> Tensor:
    """Compute ‖A‖² of each item."""
    return a.square().sum((-2, -1))


def diagonal_of(a: Tensor) -> Tensor:
    """Return the diagonal of each matrix, as a view that can be written to."""
    return a.diagonal(dim1=-2, dim2=-1)
