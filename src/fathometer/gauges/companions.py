"""Companions of the affinity score: other numbers that a pair of inputs and outputs gives.

Pairs are `[samples, features]` or `[batch, samples, features]`; a gauge returns a tensor, `[]` or `[batch]`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fathometer.arrays import Array, as_pair, exceeds_rounding, reach, resolution
from fathometer.errors import InputError
from fathometer.transport.decompositions import svd
from fathometer.transport.moments import centre


def r2(x: Array, y: Array) -> Tensor:
    """R² of the best affine map from `x` to `y` in the sample that it was fitted to (Remark 3.6).

    1 − ‖Y − XW − b‖² / ‖Y − μ(Y)‖², over all features together; 1 where Y is constant, 0 where only X
    is. With n ≤ d the fit is perfect whatever the function, and R² says nothing: see `r2_heldout`.

    Example:
        >>> import numpy as np
        >>> x = np.linspace(-1, 1, 101)[:, None]
        >>> round(r2(x, 2 * x + 1).item(), 6), round(r2(x, x**2).item(), 6)
        (1.0, 0.0)
    """
    a, b = as_pair(x, y)
    (_, a), (mean, b) = centre(a), centre(b)
    reach(a, "x")
    reach(b, "y")
    left, values, _ = svd(a)
    kept = left * (values > _negligible(a, values))[..., None, :]
    missed = _squares(b) - _squares(kept.mT @ b)
    return _explained(missed, _squares(b), exceeds_rounding(mean, b, resolution(y)))


def r2_heldout(x: Array, y: Array, *, folds: int = 5, seed: int = 0) -> Tensor:
    """R² of the best affine map on samples that it was not fitted to, by cross-validation.

    1 − Σ ‖y − ŷ‖² / Σ ‖y − μ(Y)‖², where ŷ and μ(Y) of each sample come from the other folds. The fit
    is the least-norm one when samples are fewer than features. At most 1; below 0 when the fit
    predicts worse than the mean; 1 where Y is constant.

    Args:
        x: inputs.
        y: outputs.
        folds: how many parts to hold out in turn.
        seed: of the shuffle that deals the samples out.
    """
    a, b = as_pair(x, y)
    (_, a), (mean, b) = centre(a), centre(b)
    reach(a, "x")
    reach(b, "y")
    n = a.shape[-2]
    if not isinstance(folds, int) or not 2 <= folds <= n:
        raise InputError(f"folds: expected 2 to {n}, the number of samples, got {folds!r}")
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).to(a.device)
    missed, total = torch.zeros_like(a[..., 0, 0]), torch.zeros_like(a[..., 0, 0])
    for fold in range(folds):
        held = torch.zeros(n, dtype=torch.bool, device=a.device)
        held[order[fold::folds]] = True
        (mean_a, known_a), (mean_b, known_b) = centre(a[..., ~held, :]), centre(b[..., ~held, :])
        predict = _least_squares(known_a, known_b)
        residual = b[..., held, :] - mean_b[..., None, :]
        total = total + _squares(residual)
        missed = missed + _squares(residual - predict(a[..., held, :] - mean_a[..., None, :]))
    return _explained(missed, total, exceeds_rounding(mean, b, resolution(y)))


def _least_squares(a: Tensor, b: Tensor) -> Callable[[Tensor], Tensor]:
    """The function x ↦ x W, W of least norm among those that minimise ‖A W − B‖; W is never formed."""
    left, values, right = svd(a)
    usable = values > _negligible(a, values)
    inverse = torch.where(usable, 1 / torch.where(usable, values, 1.0), 0.0)
    inner = inverse[..., :, None] * (left.mT @ b)
    return lambda x: (x @ right.mT) @ inner


def _negligible(a: Tensor, values: Tensor) -> Tensor:
    """Below this a singular value is rounding."""
    return values[..., :1] * max(a.shape[-2:]) * torch.finfo(a.dtype).eps


def _squares(a: Tensor) -> Tensor:
    return a.square().sum((-2, -1))


def _explained(missed: Tensor, total: Tensor, varies: Tensor) -> Tensor:
    share = 1 - missed / torch.where(varies, total, 1.0)
    return torch.where(varies, share.clamp(max=1), 1.0)
