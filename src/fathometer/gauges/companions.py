"""Companions of the affinity score: other numbers that a pair of inputs and outputs gives (appendix G).

Pairs are `[samples, features]` or `[batch, samples, features]`; a gauge returns a tensor, `[]` or
`[batch]`, or several by name.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fathometer.errors import InputError, NumericalError
from fathometer.gauges.least_squares import missed_held_out, missed_in_sample
from fathometer.gauges.spectrum import smaller_gram, squares, to_unit
from fathometer.transport.arrays import Array, as_pair, exceeds_rounding, reach, resolution
from fathometer.transport.moments import centre

_VAST = 1e300  # a range between such numbers may leave float64


@torch.no_grad()
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
    a, b, _, varies = _centred(x, y)
    return _like(x, _explained(missed_in_sample(a, b, resolution(x)), squares(b), varies).clamp(min=0))


@torch.no_grad()
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
    a, b, _, varies = _centred(x, y)
    n = a.shape[-2]
    if not isinstance(folds, int) or not 2 <= folds <= n:
        raise InputError(f"folds: expected 2 to {n}, the number of samples, got {folds!r}")
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).to(a.device)
    missed, total = missed_held_out(a, b, [order[fold::folds] for fold in range(folds)], resolution(x))
    found = _explained(missed, total, varies)
    if not bool(found.isfinite().all()):
        raise NumericalError("the errors of the fit leave float64; rescale the features of x")
    return _like(x, found)


@torch.no_grad()
def cka(x: Array, y: Array) -> Tensor:
    """Linear CKA, from 0 to 1: how alike are the similarities of samples before and after.

    ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖) of the centred samples, Kornblith et al. (2019). As for `r2`, 1 where Y is
    constant, 0 where only X is.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(100, 3))
        >>> round(cka(x, 2 * x[:, ::-1] + 1).item(), 6)
        1.0
    """
    a, b, moves, varies = _centred(x, y)
    of_a, of_b = smaller_gram(a), smaller_gram(b)
    wide = a.shape[-2] <= a.shape[-1]  # ‖YᵀX‖² is the inner product of XXᵀ and YYᵀ
    shared = (of_a * of_b).sum((-2, -1)) if wide else squares(b.mT @ a)
    usable = moves & varies
    scale = torch.linalg.matrix_norm(of_a) * torch.linalg.matrix_norm(of_b)
    alike = (shared / torch.where(usable, scale, 1.0)).clamp(0, 1)
    return _like(x, torch.where(usable, alike, (~varies).to(alike)))


@torch.no_grad()
def sparsity(x: Array, y: Array) -> dict[str, Tensor]:
    """The share of entries that are exactly 0, before and after, and its change (after − before).

    Example:
        >>> import torch
        >>> x = torch.tensor([[-1.0, 2.0], [3.0, -4.0]])
        >>> sparsity(x, x.relu())["change"].item()
        0.5
    """
    a, b = as_pair(x, y)
    return _change(_share_of_zeros(a), _share_of_zeros(b))


@torch.no_grad()
def entropy(x: Array, y: Array, *, bins: int = 256) -> dict[str, Tensor]:
    """Shannon's entropy of the entries, in nats, before and after, and its change (after − before).

    −Σ p log p over the histogram of all entries of a matrix, in `bins` equal parts of the range from its
    least to its largest: from 0 (constant up to the rounding of its dtype) to log(bins) (spread evenly).
    Neither scale nor shift matters; a far outlier does, as it widens the range. The paper names
    entropy without defining it.

    Args:
        x: inputs.
        y: outputs.
        bins: how many parts.

    Example:
        >>> import torch
        >>> x = torch.linspace(-1, 1, 1000)[:, None]
        >>> {name: round(value.item(), 2) for name, value in entropy(x, x.relu(), bins=8).items()}
        {'before': 2.08, 'after': 1.54, 'change': -0.54}
    """
    if not isinstance(bins, int) or bins < 1:
        raise InputError(f"bins: expected a whole number ≥ 1, got {bins!r}")
    a, b = as_pair(x, y)
    return _change(_entropy(a, bins, resolution(x)), _entropy(b, bins, resolution(y)))


@torch.no_grad()
def norm(x: Array, y: Array) -> Tensor:
    """‖Y − X‖, the root of the sum of the squares of all entries. It grows with scale, n and d.

    Example:
        >>> import torch
        >>> norm(torch.zeros(2, 2), torch.tensor([[3.0, 0.0], [0.0, 4.0]])).item()
        5.0
    """
    a, b = as_pair(x, y)
    difference, size = to_unit(b - a)
    length = squares(difference).sqrt() * size
    if not bool(length.isfinite().all()):
        raise NumericalError("‖Y − X‖ leaves float64; rescale both sides first")
    return length


def _centred(x: Array, y: Array) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Both sides, centred, `[items, n, d]`, and for each whether it varies by more than rounding."""
    a, b = (side if side.ndim == 3 else side[None] for side in as_pair(x, y))
    (mean_a, a), (mean_b, b) = centre(a), centre(b)
    reach(a, "x")
    reach(b, "y")
    return a, b, exceeds_rounding(mean_a, a, resolution(x)), exceeds_rounding(mean_b, b, resolution(y))


def _like(x: Array, values: Tensor) -> Tensor:
    """One value for a single pair, `[items]` for a batch."""
    return values[0] if np.ndim(x) == 2 else values


def _explained(missed: Tensor, total: Tensor, varies: Tensor) -> Tensor:
    share = 1 - missed / torch.where(varies, total, 1.0)
    return torch.where(varies, share.clamp(max=1), 1.0)


def _change(before: Tensor, after: Tensor) -> dict[str, Tensor]:
    return {"before": before, "after": after, "change": after - before}


def _share_of_zeros(a: Tensor) -> Tensor:
    return (a == 0).sum((-2, -1)).to(a.dtype) / a.shape[-2:].numel()


def _entropy(a: Tensor, bins: int, epsilon: float) -> Tensor:
    """Entropy of the entries of each item. One count of all items, each with bins of its own."""
    entries = a.reshape(-1, a.shape[-2] * a.shape[-1])
    vast = entries.abs().amax(-1, keepdim=True) > _VAST
    entries = torch.where(vast, entries / 4, entries)  # scale does not matter
    least, largest = entries.amin(-1, keepdim=True), entries.amax(-1, keepdim=True)
    width = largest - least
    varies = width > epsilon * torch.maximum(least.abs(), largest.abs())
    place = (entries - least).div_(torch.where(varies, width, torch.inf)).mul_(bins)
    place = place.long().clamp_(max=bins - 1)
    place += bins * torch.arange(len(entries), device=a.device)[:, None]
    counts = torch.bincount(place.flatten(), minlength=bins * len(entries)).reshape(-1, bins)
    found = torch.special.entr(counts.to(a.dtype) / entries.shape[-1]).sum(-1)
    return found.reshape(a.shape[:-2])
