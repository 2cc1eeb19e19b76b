"""How well a linear map explains the outputs: R², in the sample and held out, and linear CKA (appendix G).

Fits are ridge regressions, by the Cholesky factor of the smaller Gram matrix; on a CPU, if d < n, by its
eigenvectors, which serve all ridges.
Inside, samples are `[items, n, d]`, float64 and centred.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fathometer.errors import NumericalError
from fathometer.gauges.samples import Pair, Samples, prepare
from fathometer.gauges.spectrum import diagonal_of, gram_of_rows, squares
from fathometer.transport.arrays import Array
from fathometer.transport.decompositions import eigh

_NOISE_TO_SIGNAL = (3.0, 0.3, 0.03)  # ridges relative to the median of ‖x‖²
_MAX_ENTRIES = 2**25  # of the samples that a GPU fits with all ridges at once
_ROUNDED = 4  # what is left of rounded numbers, in multiples of their epsilon
_ROUNDED_GRAM = 1e4  # a ridge far above the rounding of a Gram matrix, in multiples of epsilon
_TRIMMED = 0.02  # share of the samples that `r2_trimmed` leaves out
_CARRIERS = 0.01  # share of the samples whose energy `carriers` adds up
_MIN_SAMPLES_DEBIASED = 4
_ROUNDING_OF_DIFFERENCE = 1e-10  # of ‖K‖²: less of it is left by rounding where nothing should be


@torch.no_grad()
def r2(x: Array, y: Array) -> Tensor:
    """Compute R² of the best affine map from `x` to `y` in the sample that it was fitted to (Remark 3.6).

    1 − ‖Y − XW − b‖² / ‖Y − μ(Y)‖², over all features together; 1 where Y is constant, 0 where only X
    is. Directions of X that are rounding are not fitted. The value rises with d / n; with n ≤ d the fit is
    perfect whatever the function, and R² says nothing: see `r2_heldout`. X and Y may have different widths.

    Example:
        >>> import numpy as np
        >>> x = np.linspace(-1, 1, 101)[:, None]
        >>> round(r2(x, 2 * x + 1).item(), 6), round(r2(x, x**2).item(), 6)
        (1.0, 0.0)
    """
    pair = prepare(x, y, unequal=True)
    residual = pair.once(_least_fit).residual
    return pair.x.each(_explained(residual, pair.y.norms2.sum(-1), pair.y.varies))


@torch.no_grad()
def r2_heldout(x: Array, y: Array) -> Tensor:
    """Compute R² of an affine map on samples that it was not fitted to, from 0 to 1.

    1 − Σ ‖y − ŷ‖² / Σ ‖y − μ‖², where ŷ and μ of each sample come from a fit to all others. The fit is a
    ridge regression: least squares also fits noise, and with d near n predicts worse than a constant. The
    ridge is λ = ρ · median ‖x‖², where ρ, the ratio of noise to signal for which it is optimal, is 3, 0.3,
    0.03 or the rounding of X's dtype, whichever predicts best. 0 where a constant predicts as well; 1 where Y
    is constant. Large samples decide: see `r2_trimmed`. X and Y may have different widths.

    Example:
        >>> import numpy as np
        >>> x, w = np.random.default_rng(0).normal(size=(2, 40, 40))
        >>> round(r2(x, x**2).item(), 2), round(r2_heldout(x, x**2).item(), 2)
        (1.0, 0.0)
    """
    pair = prepare(x, y, unequal=True)
    return pair.x.each(_held_out(pair))


@torch.no_grad()
def r2_trimmed(x: Array, y: Array) -> Tensor:
    """Compute `r2_heldout` without the 2 % of the samples whose outputs are farthest from their mean.

    In language models a few tokens may have outputs a thousand times as large as all others, so that R² is
    theirs alone: see `carriers`. Often these are the first tokens of texts; where texts have fewer than 50
    tokens they are more than 2 %, and still decide. With 25 samples or fewer none is left out.
    """
    pair = prepare(x, y, unequal=True)
    n = pair.y.norms2.shape[-1]
    kept = pair.y.norms2.topk(n - round(_TRIMMED * n), largest=False).indices
    sides = (
        Samples(side.items.take_along_dim(kept[..., None], -2), side.resolution, side.name, side.widths)
        for side in (pair.x, pair.y)
    )
    return pair.x.each(_held_out(Pair(*sides, is_finite=True)))


@torch.no_grad()
def carriers(x: Array, y: Array) -> dict[str, Tensor]:
    """Compute the share of Σ ‖x − μ‖² that the largest 1 % of the samples carry, and of y.

    About 0.01 to 0.05 where samples are alike; near 1 where a few decide means, spectra and R². 0 where all
    samples are equal. At least one sample counts as the largest.

    Example:
        >>> import torch
        >>> x = torch.randn(1000, 8, generator=torch.manual_seed(0))
        >>> x[0] *= 1000
        >>> round(carriers(x, x.tanh())["x"].item(), 2), round(carriers(x, x.tanh())["y"].item(), 2)
        (1.0, 0.02)
    """
    return prepare(x, y, unequal=True).each_side(_share_of_largest)


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
    pair = prepare(x, y, unequal=True)
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
    pair = prepare(x, y, unequal=True)
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
    n = pair.x.values.shape[-2]
    is_wide = n <= min(pair.x.values.shape[-1], pair.y.values.shape[-1])
    return (pair.x.gram * pair.y.gram).sum((-2, -1)) if is_wide else squares(pair.cross)


class _Fit(NamedTuple):
    """Σ ‖y − ŷ‖² of ridge regressions, in the sample and left out: `[items]` or `[ridges, items]`."""

    residual: Tensor
    left_out: Tensor


def _ridge_regression(pair: Pair, ridge: Tensor) -> _Fit:
    """Fit Y = XW with the least ‖Y − XW‖² + λ ‖W‖², λ `[items]` or `[ridges, items]`; all are centred."""
    n, d = pair.x.items.shape[-2:]
    return (_fit_by_features if d < n - 1 else _fit_by_samples)(pair, ridge)


def _fit_by_features(pair: Pair, ridge: Tensor) -> _Fit:
    """Fit Ŷ = X (XᵀX + λ)⁻¹ XᵀY; a sample left out misses by (y − ŷ) / (1 − h), where h is its leverage."""
    if pair.x.values.is_cuda:
        root = _inverse_root(pair.x.gram, ridge)
        rows = root @ pair.x.centred.mT
        fitted, leverage = rows.mT @ (root @ pair.cross), torch.linalg.vector_norm(rows, dim=-2).square()
    else:
        axes = pair.once(_along_axes)
        weights = 1 / (axes.values + ridge[..., None])[..., None]
        fitted, leverage = axes.rows @ (weights * axes.cross), (axes.squares @ weights).squeeze(-1)
    errors = torch.linalg.vector_norm(fitted.sub_(pair.y.centred), dim=-1).square()
    left = 1 - leverage - 1 / leverage.shape[-1]
    return _Fit(errors.sum(-1), (errors / left.square()).sum(-1))


class _Axes(NamedTuple):
    """A pair along the eigenvectors V of XᵀX."""

    values: Tensor  # of V
    rows: Tensor  # XV
    squares: Tensor  # of its entries
    cross: Tensor  # VᵀXᵀY


def _along_axes(pair: Pair) -> _Axes:
    values, vectors = eigh(pair.x.gram)
    rows = pair.x.centred @ vectors
    return _Axes(values, rows, rows.square(), vectors.mT @ pair.cross)


def _fit_by_samples(pair: Pair, ridge: Tensor) -> _Fit:
    """Fit as above where features are many: Y − Ŷ = λ PY, where P = (XXᵀ + λ)⁻¹ without its constant part.

    A sample left out misses by (PY)ᵢ / Pᵢᵢ. The eigenvalue 0 of XXᵀ, of a constant, is lifted before the
    inversion: 1 / λ would swallow all others.
    """
    n, d = pair.x.items.shape[-2:]
    kernel = pair.x.gram if n <= d else gram_of_rows(pair.x.centred)
    lift = pair.x.norms2.sum(-1) / (n * (n - 1))
    root = _inverse_root(kernel + lift[:, None, None], ridge)
    inverse = root.mT @ root - (1 / (n * (n * lift + ridge)))[..., None, None]
    if n <= pair.y.items.shape[-1]:
        errors = ((inverse @ pair.y.gram) * inverse).sum(-1)
    else:
        errors = (inverse @ pair.y.centred).square().sum(-1)
    return _Fit(ridge.square() * errors.sum(-1), (errors / diagonal_of(inverse).square()).sum(-1))


def _inverse_root(gram: Tensor, ridge: Tensor) -> Tensor:
    """Return L⁻¹, where L Lᵀ = G + λ."""
    lifted = gram.expand(*ridge.shape, *gram.shape[-2:]).clone()
    diagonal_of(lifted).add_(ridge[..., None])
    lower = torch.linalg.cholesky_ex(lifted)[0]
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    return torch.linalg.solve_triangular(lower, identity, upper=False)


def _least_ridge(x: Samples) -> Tensor:
    """Return the ridge below which directions are rounding, of the samples or of their Gram matrix."""
    n, energy = x.values.shape[-2], x.norms2.sum(-1)
    of_samples = (_ROUNDED * x.resolution) ** 2 * (energy / n + x.mean.square().sum(-1))
    of_gram = _ROUNDED_GRAM * torch.finfo(energy.dtype).eps * energy
    least = torch.maximum(of_samples, of_gram)
    return torch.where(least > 0, least, 1.0)


def _held_out(pair: Pair) -> Tensor:
    """Compute R² of samples that are left out, `[items]`, with the best of some ridges."""
    n, typical, least = pair.x.values.shape[-2], pair.x.norms2.median(-1).values, _least_ridge(pair.x)
    ridges = torch.stack([torch.maximum(ratio * typical, least) for ratio in _NOISE_TO_SIGNAL])
    at_once = len(ridges) if pair.x.values.is_cuda and pair.x.values.numel() <= _MAX_ENTRIES else 1
    missed = [_ridge_regression(pair, ridge).left_out for ridge in ridges.split(at_once)]
    best = torch.cat([*missed, pair.once(_least_fit).left_out[None]]).amin(0)
    found = _explained(best, pair.y.norms2.sum(-1) * (n / (n - 1)) ** 2, pair.y.varies)
    if not bool(found.isfinite().all()):
        raise NumericalError("the errors of the fit overflow float64; rescale the features of x")
    return found


def _least_fit(pair: Pair) -> _Fit:
    """Fit with the least ridge, for R² in the sample and held out."""
    return _ridge_regression(pair, _least_ridge(pair.x))


def _explained(residual: Tensor, total: Tensor, varies: Tensor) -> Tensor:
    share = 1 - residual / torch.where(varies, total, 1.0)
    return torch.where(varies, share.clamp(0, 1), 1.0)


def _share_of_largest(samples: Samples) -> Tensor:
    energy = samples.norms2
    largest = energy.topk(max(1, round(_CARRIERS * energy.shape[-1]))).values.sum(-1)
    total = energy.sum(-1)
    return torch.where(total > 0, largest / torch.where(total > 0, total, 1.0), 0.0)
