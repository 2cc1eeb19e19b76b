"""Estimate mean and covariance of a sample, so that no d × d matrix is needed for wide data.

Layout: samples are `[..., n, d]`. A covariance is kept as `weight · RᵀR + floor · I`, where the rows
R are the centred samples: both estimators and both ridges have this form.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from fathometer.errors import InputError, check_choice, check_positive
from fathometer.transport.arrays import Array, as_samples, check_spread, largest_entry

CovarianceKind: TypeAlias = Literal["ledoit-wolf", "sample"]


@dataclass(frozen=True)
class Ridge:
    """A multiple of the identity that is added to a covariance.

    Relative (the default): `value · Tr Σ / d`, which leaves scores unchanged when the data are
    scaled. Absolute: `value`, whatever the data; the paper's authors add `Ridge(1e-6, relative=False)`.
    """

    value: float
    relative: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", check_positive("ridge", self.value, or_zero=True))

    def amount(self, mean_variance: Tensor) -> Tensor:
        """Return what is added to the diagonal, given Tr Σ / d."""
        if self.relative:
            return self.value * mean_variance
        return torch.full_like(mean_variance, self.value)


DEFAULT_RIDGE = Ridge(1e-12)


def as_ridge(ridge: Ridge | float) -> Ridge:
    """Return a ridge; a plain number is a relative one."""
    if isinstance(ridge, Ridge):
        return ridge
    try:
        return Ridge(float(ridge))
    except (TypeError, ValueError) as error:
        raise InputError(f"expected a number ≥ 0 or a Ridge, got {ridge!r}", parameter="ridge") from error


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and covariance `weight · RᵀR + floor · I` of a sample, and how they were estimated.

    `dimension` is the number of features of the space that the covariance lives in. It exceeds the
    width of `rows` when these are coordinates in a subspace; outside it the covariance is `floor · I`.
    """

    mean: Tensor  # [..., d]
    rows: Tensor  # [..., n, d], centred
    dense: Tensor | None  # [..., d, d], the covariance; None for wide data
    weight: Tensor  # [...]
    floor: Tensor  # [...]
    trace: Tensor  # [...], of the covariance, over all `dimension` features
    shrinkage: Tensor  # [...]
    ridge: Ridge
    dimension: int | Tensor  # [...] where it differs from item to item

    @property
    def wide(self) -> bool:
        """Whether the rows span so little of the space that a d × d matrix would be a waste."""
        return is_wide(self.rows)

    @property
    def covariance(self) -> Tensor:
        """The covariance within the coordinates of `rows`, as a dense `[..., d, d]` matrix."""
        if self.dense is not None:
            return self.dense
        return _dense(self.rows.mT @ self.rows, self.weight, self.floor)

    def items(self, chosen: Tensor) -> Moments:
        """Return the moments of some items of a batch."""
        parts = {
            part.name: getattr(self, part.name)[chosen]
            for part in fields(self)
            if isinstance(getattr(self, part.name), Tensor)
        }
        return replace(self, **parts)

    def within(self, basis: Tensor) -> Moments:
        """Return the same moments in the coordinates of an orthonormal basis `[..., d, m]`."""
        rows = self.rows @ basis
        mean = (self.mean[..., None, :] @ basis).squeeze(-2)
        dense = None if is_wide(rows) else _dense(rows.mT @ rows, self.weight, self.floor)
        return replace(self, mean=mean, rows=rows, dense=dense)


def is_wide(rows: Tensor) -> bool:
    """Tell whether d > 2n: two samples of n rows then do not span the space."""
    return rows.shape[-1] > 2 * rows.shape[-2]


def moments(
    x: Array,
    *,
    covariance: CovarianceKind = "ledoit-wolf",
    ridge: Ridge | float = DEFAULT_RIDGE,
) -> Moments:
    """Estimate mean and covariance of a sample `[n, d]`, or of each of a batch `[batch, n, d]`.

    `"sample"`: S = RᵀR / n. `"ledoit-wolf"`: (1 − s) S + s (Tr S / d) I, with the shrinkage s of
    Ledoit and Wolf (2004). A ridge is added to both.

    Args:
        x: the sample.
        covariance: the estimator.
        ridge: what is added to the diagonal; a plain number is relative to the mean variance.

    Example:
        >>> import numpy as np
        >>> moments(np.array([[0.0], [2.0]]), covariance="sample", ridge=0.0).covariance.item()
        1.0
    """
    check_choice("covariance", covariance, CovarianceKind)
    mean, rows = centre(as_samples(x))
    check_spread(largest_entry(rows), "x")
    return estimate(mean, rows, covariance, as_ridge(ridge), rows.shape[-1])


def centre(samples: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean `[..., d]` and the centred rows `[..., n, d]`.

    Differences from the first row come first: they are exact where the mean is far larger than the spread.
    """
    first = samples[..., :1, :].detach()
    shifted = samples - first
    offset = shifted.mean(-2, keepdim=True)
    return (first + offset).squeeze(-2), shifted.sub_(offset)


def estimate(
    mean: Tensor,
    rows: Tensor,
    covariance: CovarianceKind,
    ridge: Ridge,
    dimension: int | Tensor,
    gram: Tensor | None = None,
) -> Moments:
    """Estimate the moments of a sample that has been checked and centred.

    `dimension` is the number of features; it exceeds the columns of `rows` where these are coordinates
    in a subspace. `gram` is RRᵀ of wide rows, RᵀR of others, where it is known.
    """
    n = rows.shape[-2]
    wide = is_wide(rows)
    if gram is None:
        gram = rows @ rows.mT if wide else rows.mT @ rows
    norms2 = torch.linalg.vector_norm(rows, dim=-1).square()
    mean_variance = norms2.sum(-1) / (n * dimension)
    if covariance == "ledoit-wolf":
        shrinkage = ledoit_wolf_shrinkage(norms2, gram, dimension)
    else:
        shrinkage = torch.zeros_like(mean_variance)
    floor = shrinkage * mean_variance + ridge.amount(mean_variance)
    weight = (1 - shrinkage) / n
    trace = dimension * ((1 - shrinkage) * mean_variance + floor)
    dense = None if wide else _dense(gram, weight, floor)
    return Moments(mean, rows, dense, weight, floor, trace, shrinkage, ridge, dimension)


def ledoit_wolf_shrinkage(norms2: Tensor, gram: Tensor, dimension: int | Tensor) -> Tensor:
    """Compute the weight s of the scaled identity that minimises the expected squared error of the estimate.

    s = min(β, δ) / δ with δ = ‖S − μI‖² and β = Σ_k ‖r_k r_kᵀ − S‖² / n². Both follow from the squared
    norms of the n centred rows and from ‖S‖; as ‖RᵀR‖ = ‖RRᵀ‖, either Gram matrix will do.
    """
    n = norms2.shape[-1]
    s_norm2 = torch.linalg.matrix_norm(gram).square() / n**2
    delta = s_norm2 - norms2.sum(-1).square() / (n**2 * dimension)
    beta = torch.minimum((norms2.square().sum(-1) / n - s_norm2) / n, delta)
    usable = (beta > 0) & (dimension > 1)  # one feature: S is a multiple of the identity already
    return torch.where(usable, beta / torch.where(usable, delta, 1.0), 0.0)


def _dense(scatter: Tensor, weight: Tensor, floor: Tensor) -> Tensor:
    """Return weight · RᵀR + floor · I."""
    dense = weight[..., None, None] * scatter
    dense.diagonal(dim1=-2, dim2=-1).add_(floor[..., None])
    return dense
