"""What the best linear map between centred samples misses, in the sample and out of it.

By Cholesky of the smaller Gram matrix; where that would cost digits, by singular values. Samples are
`[items, n, d]`, float64 and centred.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from fathometer.gauges.spectrum import squares
from fathometer.transport.decompositions import svd
from fathometer.transport.moments import centre

_TRUSTED = 1e10  # inflation up to which a fit is trusted
_FULL_RANK = 1e12  # inflation up to which a matrix is seen to be invertible
_SPREAD = 1e20  # Tr G · Tr G⁻¹: beyond, singular values may be so small as to count as zero

_Errors: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From the rows held out to what a fit to the others misses there, and the inflation of its rounding."""


def missed_in_sample(x: Tensor, y: Tensor) -> Tensor:
    """min_W ‖Y − X W‖² of each item."""
    n, d = x.shape[-2:]
    if d < n - 1:
        basis, inflation = _orthonormal(x)
        missed = squares(y - basis.mT @ (basis @ y))
        usable = inflation <= _TRUSTED
    else:  # centred rows that nothing but their mean ties together can be sent anywhere
        missed = torch.zeros_like(squares(y))
        usable = _lifted_inverse(x @ x.mT)[1] <= _FULL_RANK
    bad = (~usable).nonzero().flatten()
    return missed.index_copy(0, bad, _missed_by_svd(x[bad], y[bad])) if bad.numel() else missed


def missed_held_out(x: Tensor, y: Tensor, folds: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Σ ‖y − ŷ‖² and Σ ‖y − μ‖² of each item, where ŷ and μ of a sample come from the other folds.

    ŷ is the fit of least norm. A fold is a list of rows. One factorisation serves all folds, except
    where features are fewer than all samples and more than those outside a fold.
    """
    n, d = x.shape[-2:]
    if d < n - max(len(held) for held in folds):
        errors = _errors_by_features(x, y)
    else:
        errors = _errors_by_samples(x, y) if d >= n - 1 else _errors_by_fold(x, y)
    missed, total = torch.zeros_like(squares(y)), torch.zeros_like(squares(y))
    for held in folds:
        left, inflation = errors(held)
        bad = (~(inflation <= _TRUSTED)).nonzero().flatten()  # NaN is bad
        if bad.numel():
            left = left.index_copy(0, bad, _errors_by_svd(x[bad], y[bad], held))
        mean = y[:, held].sum(-2, keepdim=True) / (len(held) - n)  # of the others, as all sum to 0
        missed, total = missed + squares(left), total + squares(y[:, held] - mean)
    return missed, total


def _errors_by_features(x: Tensor, y: Tensor) -> _Errors:
    """For d < n: y − ŷ = (I − H_hh)⁻¹ (Y − HY)_h, where H = TᵀT projects on X and a constant.

    Where more rows than features are held out, by (I − TᵀT)⁻¹ = I + Tᵀ (I − TTᵀ)⁻¹ T.
    """
    basis, inflation = _orthonormal(x)
    left = y - basis.mT @ (basis @ y)
    basis = torch.cat((basis, torch.full_like(basis[:, :1], x.shape[-2] ** -0.5)), dim=-2)

    def errors(held: Tensor) -> tuple[Tensor, Tensor]:
        t, e = basis[:, :, held], left[:, held]
        inner = t.mT @ t if len(held) <= t.shape[-2] else t @ t.mT
        ones = torch.ones_like(inner[:, 0])
        root, more = _inverse_root(torch.diag_embed(ones) - inner, ones)
        e = root.mT @ (root @ e) if len(held) <= t.shape[-2] else e + t.mT @ (root.mT @ (root @ (t @ e)))
        return e, inflation * more / len(held)

    return errors


def _errors_by_samples(x: Tensor, y: Tensor) -> _Errors:
    """For d ≥ n − 1: y − ŷ = (P_hh)⁻¹ (P Y)_h, where P is the pseudo-inverse of XXᵀ (Dubrule 1983)."""
    p, inflation = _lifted_inverse(x @ x.mT)
    left = p @ y

    def errors(held: Tensor) -> tuple[Tensor, Tensor]:
        block = p[:, held][:, :, held]
        root, more = _inverse_root(block, _diagonal(block))
        return root.mT @ (root @ left[:, held]), inflation * more / len(held)

    return errors


def _errors_by_fold(x: Tensor, y: Tensor) -> _Errors:
    """For any d ≥ the number of the other samples: ŷ − μ = K_hk K_kk⁺ (Y − μ)_k, centred on the others."""
    kernel = x @ x.mT

    def errors(held: Tensor) -> tuple[Tensor, Tensor]:
        known = _others(held, x)
        rows = kernel[:, known]
        offset = rows[:, :, known].mean(-1, keepdim=True)
        block = rows[:, :, known] - offset - (offset - offset.mean(-2, keepdim=True)).mT
        inverse, inflation = _lifted_inverse(block)
        mean, seen = centre(y[:, known])
        return y[:, held] - mean[:, None] - (rows[:, :, held] - offset).mT @ (inverse @ seen), inflation

    return errors


def _orthonormal(x: Tensor) -> tuple[Tensor, Tensor]:
    """T `[items, d, n]` with orthonormal rows that span the columns of X, and the inflation."""
    gram = x.mT @ x
    root, inflation = _inverse_root(gram, _diagonal(gram))
    return root @ x.mT, inflation


def _lifted_inverse(kernel: Tensor) -> tuple[Tensor, Tensor]:
    """The pseudo-inverse of a centred kernel, whose one eigenvalue 0 is lifted meanwhile, and the inflation."""
    n = kernel.shape[-1]
    level = (_diagonal(kernel).sum(-1) / (n * (n - 1)))[:, None, None]
    root, inflation = _inverse_root(kernel + level, _diagonal(kernel) + level[:, 0])
    return root.mT @ root - 1 / (n**2 * level), inflation


def _inverse_root(gram: Tensor, reference: Tensor) -> tuple[Tensor, Tensor]:
    """L⁻¹, where L Lᵀ = G, and what rounding of G is at most multiplied by in G⁻¹; inf to give up.

    The rounding is relative to `reference`, the diagonal of what G was computed from, so that this is
    Tr C⁻¹ for the correlations C. A feature that does not vary is left out: it is given a variance.
    """
    still = reference == 0
    reference = torch.where(still, reference.amax(-1, keepdim=True), reference)
    lower, info = torch.linalg.cholesky_ex(gram + torch.diag_embed(torch.where(still, reference, 0.0)))
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    root = torch.linalg.solve_triangular(lower, identity, upper=False)
    diagonal = root.square().sum(-2)  # of G⁻¹
    spread = reference.sum(-1) * diagonal.sum(-1)
    inflation = (reference * diagonal).sum(-1)
    return root, torch.where((info == 0) & (spread <= _SPREAD), inflation, torch.inf)


def _missed_by_svd(x: Tensor, y: Tensor) -> Tensor:
    left, values, _ = svd(x)
    kept = left * (values > _negligible(x, values))[..., None, :]
    return squares(y) - squares(kept.mT @ y)


def _errors_by_svd(x: Tensor, y: Tensor, held: Tensor) -> Tensor:
    """The same as all `_errors`, whatever the rank; the map itself is never formed."""
    known = _others(held, x)
    (mean_x, seen_x), (mean_y, seen_y) = centre(x[:, known]), centre(y[:, known])
    left, values, right = svd(seen_x)
    kept = values > _negligible(seen_x, values)
    inverse = torch.where(kept, 1 / torch.where(kept, values, 1.0), 0.0)
    fitted = ((x[:, held] - mean_x[:, None]) @ right.mT) @ (inverse[..., None] * (left.mT @ seen_y))
    return y[:, held] - mean_y[:, None] - fitted


def _negligible(x: Tensor, values: Tensor) -> Tensor:
    """Below this a singular value is rounding."""
    return values[..., :1] * max(x.shape[-2:]) * torch.finfo(x.dtype).eps


def _others(held: Tensor, x: Tensor) -> Tensor:
    """The rows that are not held out."""
    return torch.ones(x.shape[-2], device=x.device).index_fill(0, held, 0).nonzero().flatten()


def _diagonal(a: Tensor) -> Tensor:
    return a.diagonal(dim1=-2, dim2=-1)
