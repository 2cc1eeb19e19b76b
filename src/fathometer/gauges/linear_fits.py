"""How well a linear map explains the outputs: R², R² on held-out samples, and linear CKA (appendix G).

Fits use the Cholesky factor of the smaller Gram matrix; where that would cost digits, singular values.
Inside, samples are `[items, n, d]`, float64 and centred.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from fathometer.errors import NumericalError, check_whole
from fathometer.gauges.gauge import prepare
from fathometer.gauges.spectrum import smaller_gram, squares
from fathometer.transport.arrays import Array
from fathometer.transport.decompositions import svd
from fathometer.transport.moments import centre

_FOLDS = 5
_MAX_INFLATION_HELD_OUT = 1e9  # up to which a prediction is good to about 1e-8
_MAX_INFLATION_IN_SAMPLE = 1e10  # up to which a fit is, in the sample, where its errors enter squared
_MAX_INFLATION_FULL_RANK = 1e12  # up to which a matrix is seen to be invertible
_ROUNDED = 32  # what rounding and sums of rounded numbers leave, in multiples of their epsilon
_COARSE = 1e-10  # an epsilon above this is not that of float64
_VANISHING = 1e-60  # of ‖X‖: a fit to less than this would overflow float64
_SPREAD = 1e20  # Tr G · Tr G⁻¹: beyond, singular values may be so small as to count as zero

_Errors: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From the rows held out to the errors of a fit to the others there, and the inflation of its rounding."""


@torch.no_grad()
def r2(x: Array, y: Array) -> Tensor:
    """Compute R² of the best affine map from `x` to `y` in the sample that it was fitted to (Remark 3.6).

    1 − ‖Y − XW − b‖² / ‖Y − μ(Y)‖², over all features together; 1 where Y is constant, 0 where only X
    is. With n ≤ d the fit is perfect whatever the function, and R² says nothing: see `r2_heldout`.

    Example:
        >>> import numpy as np
        >>> x = np.linspace(-1, 1, 101)[:, None]
        >>> round(r2(x, 2 * x + 1).item(), 6), round(r2(x, x**2).item(), 6)
        (1.0, 0.0)
    """
    before, after = prepare(x, y)
    a, _ = before.centred
    b, varies = after.centred
    residual = residual_in_sample(a, b, before.resolution)
    return before.each(_explained(residual, squares(b), varies).clamp(min=0))


@torch.no_grad()
def r2_heldout(x: Array, y: Array, *, folds: int | None = None, seed: int = 0) -> Tensor:
    """Compute R² of the best affine map on samples that it was not fitted to, by cross-validation.

    1 − Σ ‖y − ŷ‖² / Σ ‖y − μ(Y)‖², where ŷ and μ(Y) of each sample come from the other folds. The fit
    is the least-norm one when samples are fewer than features. At most 1; below 0 when the fit
    predicts worse than the mean; 1 where Y is constant.

    Args:
        x: inputs.
        y: outputs.
        folds: how many parts to hold out in turn; by default 5, or as many as there are samples.
        seed: seed for the shuffle that assigns samples to folds.
    """
    before, after = prepare(x, y)
    n = before.values.shape[-2]
    folds = min(_FOLDS, n) if folds is None else check_whole("folds", folds, 2, maximum=n)
    a, _ = before.centred
    b, varies = after.centred
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).to(a.device)
    held = [order[fold::folds] for fold in range(folds)]
    found = _explained(*residual_held_out(a, b, held, before.resolution), varies)
    if not bool(found.isfinite().all()):
        raise NumericalError("the errors of the fit overflow float64; rescale the features of x")
    return before.each(found)


@torch.no_grad()
def cka(x: Array, y: Array) -> Tensor:
    """Compute linear CKA, from 0 to 1: how alike are the similarities of samples before and after.

    ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖) of the centred samples, Kornblith et al. (2019). As for `r2`, 1 where Y is
    constant, 0 where only X is.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(100, 3))
        >>> round(cka(x, 2 * x[:, ::-1] + 1).item(), 6)
        1.0
    """
    before, after = prepare(x, y)
    (a, x_varies), (b, y_varies) = before.centred, after.centred
    of_a, of_b = smaller_gram(a), smaller_gram(b)
    wide = a.shape[-2] <= a.shape[-1]  # ‖YᵀX‖² is the inner product of XXᵀ and YYᵀ
    shared = (of_a * of_b).sum((-2, -1)) if wide else squares(b.mT @ a)
    usable = x_varies & y_varies
    scale = torch.linalg.matrix_norm(of_a) * torch.linalg.matrix_norm(of_b)
    alike = (shared / torch.where(usable, scale, 1.0)).clamp(0, 1)
    return before.each(torch.where(usable, alike, (~y_varies).to(alike)))


def _explained(residual: Tensor, total: Tensor, varies: Tensor) -> Tensor:
    share = 1 - residual / torch.where(varies, total, 1.0)
    return torch.where(varies, share.clamp(max=1), 1.0)


def residual_in_sample(x: Tensor, y: Tensor, epsilon: float) -> Tensor:
    """Compute min_W ‖Y − X W‖² of each item; `epsilon` is the relative spacing of the numbers in X."""
    n, d = x.shape[-2:]
    if d < n - 1:
        basis, inflation = _orthonormal(x)
        residual = squares(y - basis.mT @ (basis @ y))
        usable = inflation <= _MAX_INFLATION_IN_SAMPLE
    else:  # centred rows that nothing but their mean ties together can be sent anywhere
        residual = torch.zeros_like(squares(y))
        usable = _lifted_root(x @ x.mT)[1] <= _MAX_INFLATION_FULL_RANK
    bad = (~usable).nonzero().flatten()
    return residual.index_copy(0, bad, _residual_by_svd(x[bad], y[bad], epsilon)) if bad.numel() else residual


def residual_held_out(x: Tensor, y: Tensor, folds: Sequence[Tensor], epsilon: float) -> tuple[Tensor, Tensor]:
    """Compute Σ ‖y − ŷ‖² and Σ ‖y − μ‖² of each item, where ŷ and μ of a sample come from the other folds.

    ŷ is the fit of least norm. A fold is a list of rows.
    """
    n, d = x.shape[-2:]
    tall = d < n - max(len(held) for held in folds)
    errors = _errors_by_features(x, y) if tall else _errors_by_samples(x, y)
    residual, total = torch.zeros_like(squares(y)), torch.zeros_like(squares(y))
    for held in folds:
        residuals, inflation = errors(held)
        bad = (~(inflation <= _MAX_INFLATION_HELD_OUT)).nonzero().flatten()  # NaN is bad
        if bad.numel():
            residuals = residuals.index_copy(0, bad, _errors_by_svd(x[bad], y[bad], held, epsilon))
        mean = y[:, held].sum(-2, keepdim=True) / (len(held) - n)  # of the others, as all sum to 0
        residual, total = residual + squares(residuals), total + squares(y[:, held] - mean)
    return residual, total


def _errors_by_features(x: Tensor, y: Tensor) -> _Errors:
    """Compute errors where features are few.

    y − ŷ = (I − H_hh)⁻¹ (Y − HY)_h, where H = TᵀT projects on X and a constant.
    Where more rows than features are held out, by (I − TᵀT)⁻¹ = I + Tᵀ (I − TTᵀ)⁻¹ T.
    """
    basis, inflation = _orthonormal(x)
    residuals = y - basis.mT @ (basis @ y)
    basis = torch.cat((basis, torch.full_like(basis[:, :1], x.shape[-2] ** -0.5)), dim=-2)

    def errors(held: Tensor) -> tuple[Tensor, Tensor]:
        t, e = basis[:, :, held], residuals[:, held]
        few = len(held) <= t.shape[-2]
        rest = (t.mT @ t if few else t @ t.mT).neg_()
        _diagonal(rest).add_(1)
        root, extra_inflation = _inverse_root(rest, torch.ones_like(rest[:, 0]))
        e = root.mT @ (root @ e) if few else e + t.mT @ (root.mT @ (root @ (t @ e)))
        return e, inflation * extra_inflation

    return errors


def _errors_by_samples(x: Tensor, y: Tensor) -> _Errors:
    """Compute errors where samples are few.

    y − ŷ = (P_hh)⁻¹ (P Y)_h, where P is the pseudo-inverse of XXᵀ (Dubrule 1983).
    Where that costs digits, as it does with about as many features as samples, fold by fold.
    """
    n, d = x.shape[-2:]
    kernel = x @ x.mT
    if 2 * d < 3 * n:
        return lambda held: _errors_of_fold(kernel, y, held)
    root, inflation, level = _lifted_root(kernel)
    p = root.mT @ root - 1 / (n**2 * level)
    residuals = p @ y

    def errors(held: Tensor) -> tuple[Tensor, Tensor]:
        block = p[:, held][:, :, held]
        root, extra_inflation = _inverse_root(block, _diagonal(block).clone())
        if not bool((inflation * extra_inflation <= _MAX_INFLATION_HELD_OUT).all()):
            return _errors_of_fold(kernel, y, held)
        return root.mT @ (root @ residuals[:, held]), inflation * extra_inflation

    return errors


def _errors_of_fold(kernel: Tensor, y: Tensor, held: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the errors of a fold: ŷ − μ = K_hk K_kk⁺ (Y − μ)_k, with K centred on the other samples, k."""
    known = _others(held, y)
    (mean, seen), rows = centre(y[:, known]), kernel[:, known]
    block, across = rows[:, :, known], rows[:, :, held]
    offset = block.mean(-1, keepdim=True)
    across = across - offset
    reference = _diagonal(block)
    block = block - offset - (offset - offset.mean(-2, keepdim=True)).mT
    root, inflation, _ = _lifted_root(block, reference)
    weights = root.mT @ (root @ (across - across.mean(-2, keepdim=True)))
    return y[:, held] - mean[:, None] - weights.mT @ seen, inflation


def _orthonormal(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return T `[items, d, n]`, whose orthonormal rows span the columns of X, and the inflation."""
    gram = x.mT @ x
    root, inflation = _inverse_root(gram, _diagonal(gram))
    return root @ x.mT, inflation


def _lifted_root(kernel: Tensor, reference: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Return L⁻¹ and inflation of a centred kernel, the eigenvalue 0 lifted by a level; the level."""
    n, diagonal = kernel.shape[-1], _diagonal(kernel)
    level = diagonal.sum(-1)[:, None, None] / (n * (n - 1))
    reference = diagonal if reference is None else torch.maximum(diagonal, reference)
    return *_inverse_root(kernel + level, reference + level[:, 0]), level


def _inverse_root(gram: Tensor, reference: Tensor) -> tuple[Tensor, Tensor]:
    """Return L⁻¹, where L Lᵀ = G, and what rounding of G is at most multiplied by in G⁻¹; inf to give up.

    The rounding is relative to `reference`, the diagonal of what G was computed from, so that this is
    Tr C⁻¹ for the correlations C. A feature that does not vary is left out: it is given a variance. G is
    overwritten.
    """
    is_constant = reference == 0
    reference = torch.where(is_constant, reference.amax(-1, keepdim=True), reference)
    _diagonal(gram).add_(torch.where(is_constant, reference, 0.0))
    lower, info = torch.linalg.cholesky_ex(gram)
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    root = torch.linalg.solve_triangular(lower, identity, upper=False)
    diagonal = root.square().sum(-2)  # of G⁻¹
    spread = reference.sum(-1) * diagonal.sum(-1)
    inflation = (reference * diagonal).sum(-1)
    return root, torch.where((info == 0) & (spread <= _SPREAD), inflation, torch.inf)


def _residual_by_svd(x: Tensor, y: Tensor, epsilon: float) -> Tensor:
    """Compute what `residual_in_sample` does, for any rank."""
    if epsilon > _COARSE:
        return squares(y - _damped_fit(x, y, epsilon)(x))
    left, values, _ = svd(x)
    kept = left * (values > _negligible(x, values))[..., None, :]
    return squares(y) - squares(kept.mT @ y)


def _errors_by_svd(x: Tensor, y: Tensor, held: Tensor, epsilon: float) -> Tensor:
    """Compute the errors of a fold for any rank; the map itself is never formed."""
    known = _others(held, x)
    (mean_x, seen_x), (mean_y, seen_y) = centre(x[:, known]), centre(y[:, known])
    unseen_x, unseen_y = x[:, held] - mean_x[:, None], y[:, held] - mean_y[:, None]
    if epsilon > _COARSE:
        return unseen_y - _damped_fit(seen_x, seen_y, epsilon)(unseen_x)
    left, values, right = svd(seen_x)
    vanishing = _VANISHING * squares(x).sqrt()[:, None]  # all that varies may be among the rows held out
    kept = values > torch.maximum(_negligible(seen_x, values), vanishing)
    inverse = torch.where(kept, 1 / torch.where(kept, values, 1.0), 0.0)
    return unseen_y - (unseen_x @ right.mT) @ (inverse[..., None] * (left.mT @ seen_y))


def _damped_fit(x: Tensor, y: Tensor, epsilon: float) -> Callable[[Tensor], Tensor]:
    """Return the fit to samples that were rounded to `epsilon`: what rounding added to X is damped away.

    Directions in which X has less than some `epsilon` of its norm are none of its features. A ridge at that
    level suppresses them and leaves the others as they are.
    """
    gram = smaller_gram(x)
    ridge = (_ROUNDED * epsilon) ** 2 * squares(x)
    _diagonal(gram).add_(torch.where(ridge > 0, ridge, 1.0)[:, None])
    lower = torch.linalg.cholesky(gram)
    if x.shape[-2] <= x.shape[-1]:
        weights = torch.cholesky_solve(y, lower)
        return lambda rows: (rows @ x.mT) @ weights
    weights = torch.cholesky_solve(x.mT @ y, lower)
    return lambda rows: rows @ weights


def _negligible(x: Tensor, values: Tensor) -> Tensor:
    """Return the size below which a singular value is rounding."""
    return values[..., :1] * max(x.shape[-2:]) * torch.finfo(x.dtype).eps


def _others(held: Tensor, x: Tensor) -> Tensor:
    """Return the rows that are not held out."""
    return torch.ones(x.shape[-2], device=x.device).index_fill(0, held, 0).nonzero().flatten()


def _diagonal(a: Tensor) -> Tensor:
    return a.diagonal(dim1=-2, dim2=-1)
