"""Companions of the affinity score: other numbers that a pair of inputs and outputs gives.

Pairs are `[samples, features]` or `[batch, samples, features]`; a gauge returns a tensor, `[]` or `[batch]`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fathometer.arrays import Array, as_pair
from fathometer.errors import InputError
from fathometer.transport.moments import centre


def r2(x: Array, y: Array) -> Tensor:
    """R² of the best affine map from `x` to `y` in the sample that it was fitted to (Remark 3.6).

    1 − ‖Y − XW − b‖² / ‖Y − μ(Y)‖², over all features together; 1 where Y is constant. With n ≤ d
    the fit is perfect whatever the function, and R² says nothing: see `r2_heldout`.

    Example:
        >>> import numpy as np
        >>> x = np.linspace(-1, 1, 101)[:, None]
        >>> round(r2(x, 2 * x + 1).item(), 6), round(r2(x, x**2).item(), 6)
        (1.0, 0.0)
    """
    a, b = as_pair(x, y)
    (_, a), (_, b) = centre(a), centre(b)
    left, values, _ = torch.linalg.svd(a, full_matrices=False)
    kept = left * (values > _negligible(a, values))[..., None, :]
    return _explained(_squares(b) - _squares(kept.mT @ b), _squares(b))


def r2_heldout(x: Array, y: Array, *, folds: int = 5, seed: int = 0) -> Tensor:
    """R² of the best affine map on samples that it was not fitted to, by cross-validation.

    1 − Σ ‖y − ŷ‖² / Σ ‖y − μ(Y)‖², where ŷ and μ(Y) of each sample come from the other folds. The fit
    is the least-norm one when samples are fewer than features. At most 1; below 0 when the fit
    predicts worse than the mean.

    Args:
        x: inputs.
        y: outputs.
        folds: how many parts to hold out in turn.
        seed: of the shuffle that deals the samples out.
    """
    a, b = as_pair(x, y)
    n = a.shape[-2]
    if not 2 <= folds <= n:
        raise InputError(f"folds: expected 2 to {n}, the number of samples, got {folds}")
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).to(a.device)
    missed, total = torch.zeros(a.shape[:-2]).to(a), torch.zeros(a.shape[:-2]).to(a)
    for fold in range(folds):
        held = torch.zeros(n, dtype=torch.bool, device=a.device)
        held[order[fold::folds]] = True
        mean_a, mean_b = a[..., ~held, :].mean(-2, True), b[..., ~held, :].mean(-2, True)
        weights = _least_squares(a[..., ~held, :] - mean_a, b[..., ~held, :] - mean_b)
        residual = b[..., held, :] - mean_b
        total = total + _squares(residual)
        missed = missed + _squares(residual - (a[..., held, :] - mean_a) @ weights)
    return _explained(missed, total)


def _least_squares(a: Tensor, b: Tensor) -> Tensor:
    """The W of least norm that minimises ‖A W − B‖."""
    left, values, right = torch.linalg.svd(a, full_matrices=False)
    usable = values > _negligible(a, values)
    inverse = torch.where(usable, 1 / torch.where(usable, values, 1.0), 0.0)
    return right.mT @ (inverse[..., :, None] * (left.mT @ b))


def _negligible(a: Tensor, values: Tensor) -> Tensor:
    """Below this a singular value is rounding."""
    return values[..., :1] * max(a.shape[-2:]) * torch.finfo(a.dtype).eps


def _squares(a: Tensor) -> Tensor:
    return a.square().sum((-2, -1))


def _explained(missed: Tensor, total: Tensor) -> Tensor:
    varies = total > 0
    return torch.where(varies, 1 - missed / torch.where(varies, total, 1.0), 1.0)
