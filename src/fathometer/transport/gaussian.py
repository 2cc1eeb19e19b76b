"""Optimal transport between the normal approximations of two samples: closed forms.

Samples are `[n, d]` or `[batch, n, d]`; a result has one value per item of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.transport.arrays import Array, as_samples
from fathometer.transport.decompositions import singular
from fathometer.transport.moments import Moments
from fathometer.transport.riccati import RootMethod, push_forward, solve_riccati
from fathometer.transport.span import span_basis


@dataclass(frozen=True, eq=False)
class AffineMap:
    """T(x) = A (x − μ_X) + μ_Y, Eq. (4).

    For wide data A is held as `core` in an orthonormal `basis` of the samples' span, and as
    `tail` · I outside of it.
    """

    core: Tensor  # [..., m, m]
    basis: Tensor | None  # [..., d, m]
    tail: Tensor  # [...]
    source_mean: Tensor  # [..., d]
    target_mean: Tensor  # [..., d]

    def __call__(self, x: Array) -> Tensor:
        """T(x) of each row."""
        samples = as_samples(x, minimum=1)
        if samples.shape[-1] != self.source_mean.shape[-1]:
            raise InputError(
                f"x: expected {self.source_mean.shape[-1]} features, as the map was made for, "
                f"got shape {list(samples.shape)}"
            )
        centred = samples - self.source_mean[..., None, :]
        if self.basis is None:
            moved = centred @ self.core
        else:
            inside = centred @ self.basis
            tail = self.tail[..., None, None]
            moved = tail * centred + (inside @ self.core - tail * inside) @ self.basis.mT
        return moved + self.target_mean[..., None, :]

    @property
    def matrix(self) -> Tensor:
        """A as a dense `[..., d, d]` matrix."""
        if self.basis is None:
            return self.core
        tail = self.tail[..., None, None]
        eye = torch.eye(self.core.shape[-1]).to(self.core)
        dense = self.basis @ (self.core - tail * eye) @ self.basis.mT
        return dense + tail * torch.eye(dense.shape[-1]).to(dense)

    @property
    def offset(self) -> Tensor:
        """The offset b = μ_Y − A μ_X."""
        moved = self.matrix @ self.source_mean[..., None]
        return self.target_mean - moved.squeeze(-1)


def affine_map(source: Moments, target: Moments, *, method: RootMethod | None = None) -> AffineMap:
    """The optimal map between two normal laws, Eq. (4).

    Example:
        >>> import numpy as np
        >>> from fathometer.transport import moments
        >>> x = np.array([[0.0], [1.0], [2.0]])
        >>> t = affine_map(moments(x), moments(3 * x + 1))
        >>> round(t.matrix.item(), 6), round(t.offset.item(), 6)
        (3.0, 1.0)
    """
    _check_same_space(source, target)
    if bool((source.trace == 0).any()):
        raise InputError("the source is constant: expected a sample that varies, to be moved to the target")
    basis = _joint_basis(source, target)
    inner_source = source if basis is None else source.within(basis)
    inner_target = target if basis is None else target.within(basis)
    core = linear_part(inner_source, inner_target, method)
    tail = (target.floor / source.floor).sqrt()
    return AffineMap(core, basis, tail, source.mean, target.mean)


def bures_wasserstein(source: Moments, target: Moments) -> Tensor:
    """W₂ between the two normal laws.

    W₂² = ‖μ_X − μ_Y‖² + Tr Σ_X + Tr Σ_Y − 2 Tr (Σ_X Σ_Y)^½.
    """
    _check_same_space(source, target)
    means = (source.mean - target.mean).square().sum(-1)
    covariances = source.trace + target.trace - 2 * fidelity(source, target)
    return (means + covariances.clamp(min=0)).sqrt()


def fidelity(source: Moments, target: Moments) -> Tensor:
    """Tr (Σ_X Σ_Y)^½ = Tr(A Σ_X), over all features."""
    _check_same_space(source, target)
    varies = (source.trace > 0) & (target.trace > 0)
    if not bool(varies.all()):  # with a constant sample, the trace is 0 and no map is needed
        found = torch.zeros_like(source.trace)
        if not bool(varies.any()):
            return found
        items = varies.nonzero().flatten()
        return found.index_copy(0, items, fidelity(source.items(items), target.items(items)))
    basis = _joint_basis(source, target)
    if basis is not None:
        source, target = source.within(basis), target.within(basis)
    inside = (linear_part(source, target) * source.covariance).sum((-2, -1))
    outside = source.dimension - source.rows.shape[-1]
    return inside + outside * (source.floor * target.floor).sqrt()


def gelbrich_bound(source: Moments, target: Moments) -> Tensor:
    """A lower bound on W₂(X, Y): that of the normal approximations (Theorem 3.4).

    Exact for `covariance="sample"` without ridge; a shrunk covariance is not that of the sample.
    """
    return bures_wasserstein(source, target)


def normal_gap_bound(source: Moments, target: Moments) -> Tensor:
    """An upper bound on |W₂(N_X, N_Y) − W₂(X, Y)| (Proposition 3.5, 1).

    2 Tr (Σ_X Σ_Y)^½ / sqrt(Tr Σ_X + Tr Σ_Y).
    """
    return 2 * fidelity(source, target) / (source.trace + target.trace).sqrt()


def affine_residual_bound(target: Moments) -> Tensor:
    """An upper bound on W₂(T X, Y): sqrt(2 Tr Σ_Y) (Proposition 3.5, 2), the unit of the score."""
    return (2 * target.trace).sqrt()


def linear_part(source: Moments, target: Moments, method: RootMethod | None = None) -> Tensor:
    """A within the coordinates of the rows; those of the source may be the first of the target's."""
    _check_invertible(source)
    sigma_x, sigma_y = source.covariance, target.covariance
    core = solve_riccati(
        sigma_x.reshape(-1, *sigma_x.shape[-2:]),
        sigma_y.reshape(-1, *sigma_y.shape[-2:]),
        source.floor.reshape(-1),
        target.floor.reshape(-1),
        method=method,
    )
    return core.reshape(*sigma_x.shape[:-1], sigma_y.shape[-1])


def transported(source: Moments, target: Moments) -> Tensor:
    """The rows of the source, moved by A, `[batch, n, width]`; on a GPU without forming A."""
    rows, width = source.rows, target.rows.shape[-1]
    needs_gradient = torch.is_grad_enabled() and (rows.requires_grad or target.rows.requires_grad)
    if not rows.is_cuda or needs_gradient or rows.shape[-1] < width:
        return rows @ linear_part(source, target)
    _check_invertible(source)
    return push_forward(rows, source.covariance, target.covariance, source.floor, target.floor)


def _check_invertible(source: Moments) -> None:
    n, width = source.rows.shape[-2:]
    if n <= width and source.ridge.value == 0 and bool((source.floor == 0).any()):
        raise singular()  # of rank n − 1 at most; rounding may hide it from a decomposition


def _joint_basis(source: Moments, target: Moments) -> Tensor | None:
    return span_basis(source.rows, target.rows) if source.wide and target.wide else None


def _check_same_space(source: Moments, target: Moments) -> None:
    for side in (source, target):
        if not isinstance(side, Moments):
            raise InputError(f"expected moments(x), moments(y), got {type(side).__name__}")
    if source.mean.shape != target.mean.shape:
        raise InputError(
            "expected moments in one space, got means of shape "
            f"{list(source.mean.shape)} and {list(target.mean.shape)}"
        )
