"""How well a linear map explains the outputs: R², R² on held-out samples, and linear CKA (appendix G).

Fits use the Cholesky factor of the smaller Gram matrix; where that would cost digits, singular values.
Inside, samples are `[items, n, d]`, float64 and centred.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fathometer.errors import NumericalError, check_whole
from fathometer.gauges.samples import Pair, Samples, prepare
from fathometer.gauges.spectrum import diagonal_of, smaller_gram, squares
from fathometer.transport.arrays import Array
from fathometer.transport.decompositions import svd
from fathometer.transport.moments import centre

_FOLDS = 5
_MAX_INFLATION_HELD_OUT = 1e9  # up to which a prediction is good to about 1e-8
_MAX_INFLATION_IN_SAMPLE = 1e10  # up to which a fit is, in the sample, where its errors enter squared
_MAX_INFLATION_FULL_RANK = 1e12  # up to which a matrix is seen to be invertible
_ROUNDED = 32  # what rounding and sums of rounded numbers leave, in multiples of their epsilon
_COARSE = 1e-10  # an epsilon above this is not that of float64
_VERY_COARSE = 1e-5  # from here on it is that of float16 or bfloat16
_VANISHING = 1e-60  # of ‖X‖: a fit to less than this would overflow float64
_MIN_SAMPLES_DEBIASED = 4
_ROUNDING_OF_DIFFERENCE = 1e-10  # of ‖K‖²: less of it is left by rounding where nothing should be
_SPREAD = 1e20  # Tr G · Tr G⁻¹: beyond, singular values may be so small as to count as zero


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
    pair = prepare(x, y)
    share = _explained(_residual_in_sample(pair), pair.y.norms2.sum(-1), pair.y.varies)
    return pair.x.each(share.clamp(min=0))


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
    pair = prepare(x, y)
    n = pair.x.values.shape[-2]
    folds = min(_FOLDS, n) if folds is None else check_whole("folds", folds, 2, maximum=n)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).to(pair.x.values.device)
    found = _explained(*_residual_held_out(pair, order, folds), pair.y.varies)
    if not bool(found.isfinite().all()):
        raise NumericalError("the errors of the fit overflow float64; rescale the features of x")
    return pair.x.each(found)


@torch.no_grad()
def cka(x: Array, y: Array) -> Tensor:
    """Compute linear CKA, from 0 to 1: how alike are the similarities of samples before and after.

    ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖) of the centred samples, Kornblith et al. (2019). As for `r2`, 1 where Y is
    constant, 0 where only X is. With few samples it is too large: see `cka_debiased`.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(100, 3))
        >>> round(cka(x, 2 * x[:, ::-1] + 1).item(), 6)
        1.0
    """
    pair = prepare(x, y)
    usable = pair.x.varies & pair.y.varies
    scale = torch.linalg.matrix_norm(pair.x.gram) * torch.linalg.matrix_norm(pair.y.gram)
    alike = (pair.once(_shared_squares) / torch.where(usable, scale, 1.0)).clamp(0, 1)
    return pair.x.each(torch.where(usable, alike, (~pair.y.varies).to(alike)))


@torch.no_grad()
def cka_debiased(x: Array, y: Array) -> Tensor:
    """Compute linear CKA without the bias of few samples, from −1 to 1: near 0 where X and Y are independent.

    H(X, Y) / √(H(X, X) H(Y, Y)), where H is the unbiased estimator of HSIC (Song et al., 2012; Nguyen et al.,
    2021). With K = XXᵀ and L = YYᵀ of the centred samples, a and b their diagonals,

        H = [⟨K, L⟩ − Σab + Σa Σb / ((n − 1)(n − 2)) − 2 Σab / (n − 2)] / (n(n − 3))

    May fall below 0 by chance. As for `r2`, 1 where Y is constant, 0 where only X is. NaN with n < 4, or
    where all samples of one side have the same distance to each other. As in `cka`, large directions decide.

    Example:
        >>> import numpy as np
        >>> x, y = np.random.default_rng(0).normal(size=(2, 32, 64))
        >>> round(cka(x, y).item(), 2), round(cka_debiased(x, y).item(), 2)
        (0.68, 0.05)
    """
    pair = prepare(x, y)
    if pair.x.values.shape[-2] < _MIN_SAMPLES_DEBIASED:
        return pair.x.each(torch.full_like(pair.x.norms2[:, 0], torch.nan))
    shared = _debiased(pair.once(_shared_squares), pair.x.norms2, pair.y.norms2)
    own, known = torch.ones_like(shared), torch.ones_like(pair.x.varies)
    for side in (pair.x, pair.y):
        biased = squares(side.gram)
        found = _debiased(biased, side.norms2, side.norms2)
        is_known = found > _ROUNDING_OF_DIFFERENCE * biased
        own = own * torch.where(is_known, found, 1.0).sqrt()
        known &= is_known
    alike = torch.where(known, (shared / own).clamp(-1, 1), torch.nan)
    usable = pair.x.varies & pair.y.varies
    return pair.x.each(torch.where(usable, alike, (~pair.y.varies).to(alike)))


def _debiased(product: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Compute n(n − 3) times the unbiased HSIC from ⟨K, L⟩ and the diagonals of K and L, centred kernels."""
    n, both = a.shape[-1], (a * b).sum(-1)
    return product - both * (1 + 2 / (n - 2)) + a.sum(-1) * b.sum(-1) / ((n - 1) * (n - 2))


def _shared_squares(pair: Pair) -> Tensor:
    """Compute ‖YᵀX‖², which is the inner product of XXᵀ and YYᵀ."""
    n, d = pair.x.values.shape[-2:]
    return (pair.x.gram * pair.y.gram).sum((-2, -1)) if n <= d else squares(pair.cross)


def _explained(residual: Tensor, total: Tensor, varies: Tensor) -> Tensor:
    share = 1 - residual / torch.where(varies, total, 1.0)
    return torch.where(varies, share.clamp(max=1), 1.0)


def _residual_in_sample(pair: Pair) -> Tensor:
    """Compute min_W ‖Y − X W‖² of each item."""
    n, d = pair.x.values.shape[-2:]
    if d < n - 1:
        _, residuals, inflation = pair.once(_projection)
        residual, usable = squares(residuals), inflation <= _MAX_INFLATION_IN_SAMPLE
    else:
        p, inflation = pair.once(_inverse_kernel)
        if _damping(pair):  # Y − K (K + λI)⁻¹ Y = λ (K + λI)⁻¹ Y
            factors = pair.once(_ridge)[:, None, None] * p
            residual, usable = _squares_of_products(factors[:, None], pair.y)[:, 0], inflation.isfinite()
        else:  # centred rows that nothing but their mean ties together can be sent anywhere
            residual = torch.zeros_like(pair.y.norms2[:, 0])
            usable = inflation <= _MAX_INFLATION_FULL_RANK
    bad = (~usable).nonzero().flatten()
    if not bad.numel():
        return residual
    by_svd = _residual_by_svd(pair.x.centred[bad], pair.y.centred[bad], pair.x.resolution)
    return residual.index_copy(0, bad, by_svd)


def _residual_held_out(pair: Pair, order: Tensor, folds: int) -> tuple[Tensor, Tensor]:
    """Compute Σ ‖y − ŷ‖² and Σ ‖y − μ‖² of each item, where ŷ and μ of a sample come from the other folds.

    ŷ is the fit of least norm. Folds of one size are computed together on a GPU.
    """
    n, d = pair.x.values.shape[-2:]
    every = [order[fold::folds] for fold in range(folds)]
    sizes = sorted({len(held) for held in every})
    together = pair.x.values.is_cuda
    groups = [torch.stack([held for held in every if len(held) == size]) for size in sizes]
    if not together:
        groups = [held[None] for held in every]
    errors = _errors_by_features if d < n - sizes[-1] else _errors_by_samples
    residual, total = torch.zeros_like(pair.y.norms2[:, 0]), torch.zeros_like(pair.y.norms2[:, 0])
    for held in groups:
        found, inflation = errors(pair, held)  # [items, folds] each
        for item, fold in (~(inflation <= _MAX_INFLATION_HELD_OUT)).nonzero().tolist():  # NaN is bad
            x, y = pair.x.centred[item, None], pair.y.centred[item, None]
            found[item, fold] = squares(_errors_by_svd(x, y, held[fold], pair.x.resolution))[0]
        residual, total = residual + found.sum(-1), total + _deviations(pair.y, held)
    return residual, total


def _deviations(y: Samples, held: Tensor) -> Tensor:
    """Compute Σ ‖y − μ‖² over the rows held out, where μ is the mean of the others: all rows sum to 0."""
    n, size = y.values.shape[-2], held.shape[-1]
    of_sums = y.centred[:, held].sum(-2).square().sum((-2, -1))  # ‖Σ y‖² of each fold
    return y.norms2[:, held].sum((-2, -1)) + of_sums * (2 / (n - size) + size / (n - size) ** 2)


def _errors_by_features(pair: Pair, held: Tensor) -> tuple[Tensor, Tensor]:
    """Compute ‖y − ŷ‖² of each fold, and the inflation of its rounding, where features are few.

    y − ŷ = (I − H_hh)⁻¹ (Y − HY)_h, where H = TᵀT projects on X and a constant.
    Where more rows than features are held out, by (I − TᵀT)⁻¹ = I + Tᵀ (I − TTᵀ)⁻¹ T.
    """
    basis, residuals, inflation = pair.once(_projection)
    t = basis[:, :, held].transpose(1, 2)  # [items, folds, d, rows]
    t = torch.cat((t, torch.full_like(t[:, :, :1], pair.x.values.shape[-2] ** -0.5)), dim=-2)
    e = residuals[:, held]
    few = t.shape[-1] <= t.shape[-2]
    rest = (t.mT @ t if few else t @ t.mT).neg_()
    diagonal_of(rest).add_(1)
    root, extra_inflation = _inverse_root(rest, torch.ones_like(diagonal_of(rest)))
    e = root.mT @ (root @ e) if few else e + t.mT @ (root.mT @ (root @ (t @ e)))
    return squares(e), inflation[:, None] * extra_inflation


def _errors_by_samples(pair: Pair, held: Tensor) -> tuple[Tensor, Tensor]:
    """Compute ‖y − ŷ‖² of each fold, and the inflation of its rounding, where samples are few.

    y − ŷ = (P_hh)⁻¹ (P Y)_h, where P is the inverse of XXᵀ without its constant part (Dubrule 1983).
    Where that costs digits, as it may with about as many features as samples, fold by fold.
    """
    n, d = pair.x.values.shape[-2:]
    if 2 * d >= 3 * n:
        p, inflation = pair.once(_inverse_kernel)
        block = p[:, held[:, :, None], held[:, None, :]]  # [items, folds, rows, rows]
        root, extra_inflation = _inverse_root(block, diagonal_of(block).clone())
        inflation = inflation[:, None] * extra_inflation
        if bool((inflation <= _MAX_INFLATION_HELD_OUT).all()):
            return _squares_of_products(root.mT @ (root @ p[:, held]), pair.y), inflation
    return _errors_of_folds(pair, held)


def _errors_of_folds(pair: Pair, held: Tensor) -> tuple[Tensor, Tensor]:
    """Compute ‖y − ŷ‖² of folds: ŷ − μ = K_hk K_kk⁺ (Y − μ)_k, with K centred on the other samples, k."""
    kernel, ridge = pair.once(_kernel), pair.once(_ridge)
    known = torch.stack([_others(rows, kernel) for rows in held])
    block = kernel[:, known[:, :, None], known[:, None, :]]  # [items, folds, others, others]
    across = kernel[:, known[:, :, None], held[:, None, :]]
    offset = block.mean(-1, keepdim=True)
    across = across - offset
    reference = diagonal_of(block)
    block = block - offset - (offset - offset.mean(-2, keepdim=True)).mT
    diagonal_of(block).add_(ridge[:, None, None])
    root, inflation, _ = _lifted_root(block, reference)
    weights = (root.mT @ (root @ (across - across.mean(-2, keepdim=True)))).mT
    weights = weights - weights.mean(-1, keepdim=True) + 1 / known.shape[-1]  # ŷ = weights · Y_k
    factors = kernel.new_zeros(*weights.shape[:3], kernel.shape[-1])  # y − ŷ = A Y
    for fold in range(len(held)):
        of_fold = factors[:, fold]
        of_fold[:, torch.arange(held.shape[-1], device=held.device), held[fold]] = 1
        of_fold[:, :, known[fold]] = -weights[:, fold]
    found = _squares_of_products(factors, pair.y)
    return found, torch.zeros_like(inflation) if _damping(pair) else inflation  # which the ridge limits


def _squares_of_products(factors: Tensor, y: Samples) -> Tensor:
    """Compute ‖A Y‖² of factors A `[items, folds, rows, n]`; for wide samples from YYᵀ."""
    n, d = y.values.shape[-2:]
    if n <= d:
        return ((factors @ y.gram[:, None]) * factors).sum((-2, -1)).clamp(min=0)
    return squares(factors @ y.centred[:, None])


def _damping(pair: Pair) -> float:
    """Return the ridge of samples that were rounded to float32, relative to the diagonal of a Gram matrix.

    Directions in which X has less than some of its resolution are rounding, not features. A ridge at that
    level suppresses them and leaves the others, and so R², as they are.
    """
    epsilon = pair.x.resolution
    return (_ROUNDED * epsilon) ** 2 if _COARSE < epsilon < _VERY_COARSE else 0.0


def _projection(pair: Pair) -> tuple[Tensor, Tensor, Tensor]:
    """Return T `[items, d, n]`, whose orthonormal rows span the features of X; Y − TᵀTY; the inflation."""
    gram, damping = pair.x.gram.clone(), _damping(pair)
    diagonal_of(gram).mul_(1 + damping)
    root, inflation = _inverse_root(gram, diagonal_of(pair.x.gram))
    if damping:  # which limits the inflation
        inflation = torch.where(inflation.isfinite(), 1.0, inflation)
    basis = root @ pair.x.centred.mT
    return basis, torch.baddbmm(pair.y.centred, basis.mT, root @ pair.cross, alpha=-1), inflation


def _kernel(pair: Pair) -> Tensor:
    """Return XXᵀ of the centred samples."""
    n, d = pair.x.values.shape[-2:]
    return pair.x.gram if n <= d else pair.x.centred @ pair.x.centred.mT


def _ridge(pair: Pair) -> Tensor:
    """Return the ridge λ of the kernel XXᵀ, `[items]`."""
    return _damping(pair) * pair.x.norms2.mean(-1)


def _inverse_kernel(pair: Pair) -> tuple[Tensor, Tensor]:
    """Return the inverse of XXᵀ + λI on all but constants, `[items, n, n]`, and the inflation."""
    kernel, ridge = pair.once(_kernel), pair.once(_ridge)
    n = kernel.shape[-1]
    root, inflation, level = _lifted_root(kernel + torch.diag_embed(ridge[:, None].expand(-1, n)))
    return root.mT @ root - 1 / (n * (n * level + ridge[:, None, None])), inflation


def _lifted_root(kernel: Tensor, reference: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Return L⁻¹ and inflation of a centred kernel, the eigenvalue 0 lifted by a level; the level."""
    n, diagonal = kernel.shape[-1], diagonal_of(kernel)
    level = diagonal.sum(-1)[..., None, None] / (n * (n - 1))
    reference = diagonal if reference is None else torch.maximum(diagonal, reference)
    return *_inverse_root(kernel + level, reference + level[..., 0]), level


def _inverse_root(gram: Tensor, reference: Tensor) -> tuple[Tensor, Tensor]:
    """Return L⁻¹, where L Lᵀ = G, and what rounding of G is at most multiplied by in G⁻¹; inf to give up.

    The rounding is relative to `reference`, the diagonal of what G was computed from, so that this is
    Tr C⁻¹ for the correlations C. A feature that does not vary is left out: it is given a variance. G is
    overwritten.
    """
    is_constant = reference == 0
    reference = torch.where(is_constant, reference.amax(-1, keepdim=True), reference)
    diagonal_of(gram).add_(torch.where(is_constant, reference, 0.0))
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
    diagonal_of(gram).add_(torch.where(ridge > 0, ridge, 1.0)[:, None])
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
