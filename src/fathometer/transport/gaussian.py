"""Optimal transport between the normal approximations of two samples: closed forms.

Samples are `[n, d]` or `[batch, n, d]`; a result has one value per item of the batch. Two centred samples of
n rows in d > 2n features span at most 2n dimensions. Distances, normal laws and the affine map between them
are the same there, up to a multiple of the identity outside.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.transport.arrays import Array, as_samples
from fathometer.transport.decompositions import singular_error
from fathometer.transport.moments import Moments
from fathometer.transport.riccati import push_forward, solve_riccati

_ROUNDING = 4 * torch.finfo(torch.float64).eps


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
        """Return T(x) of each row."""
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
        """A, as a dense `[..., d, d]` matrix."""
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


def affine_map(source: Moments, target: Moments) -> AffineMap:
    """Compute the optimal map between two normal laws, Eq. (4).

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
        raise InputError(
            "expected a source that varies, got a constant one, which no map moves to the target"
        )
    basis = _joint_basis(source, target)
    inner_source = source if basis is None else source.within(basis)
    inner_target = target if basis is None else target.within(basis)
    core = linear_part(inner_source, inner_target)
    tail = (target.floor / source.floor).sqrt()
    return AffineMap(core, basis, tail, source.mean, target.mean)


def bures_wasserstein(source: Moments, target: Moments) -> Tensor:
    """Compute W₂ between the two normal laws.

    W₂² = ‖μ_X − μ_Y‖² + Tr Σ_X + Tr Σ_Y − 2 Tr (Σ_X Σ_Y)^½.
    """
    covariances = source.trace + target.trace - 2 * fidelity(source, target)
    means = (source.mean - target.mean).square().sum(-1)
    return (means + covariances.clamp(min=0)).sqrt()


def fidelity(source: Moments, target: Moments) -> Tensor:
    """Compute Tr (Σ_X Σ_Y)^½ = Tr(A Σ_X), over all features."""
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
    """Compute a lower bound on W₂(X, Y): that of the normal approximations (Theorem 3.4).

    Exact for `covariance="sample"` without ridge; a shrunk covariance is not that of the sample.
    """
    return bures_wasserstein(source, target)


def normal_gap_bound(source: Moments, target: Moments) -> Tensor:
    """Compute an upper bound on |W₂(N_X, N_Y) − W₂(X, Y)| (Proposition 3.5, 1).

    2 Tr (Σ_X Σ_Y)^½ / sqrt(Tr Σ_X + Tr Σ_Y); 0 where both are constant.
    """
    total = source.trace + target.trace
    return 2 * fidelity(source, target) / torch.where(total > 0, total, 1.0).sqrt()


def affine_residual_bound(target: Moments) -> Tensor:
    """Compute an upper bound on W₂(T X, Y): sqrt(2 Tr Σ_Y) (Proposition 3.5, 2), the unit of the score."""
    return (2 * target.trace).sqrt()


def linear_part(source: Moments, target: Moments) -> Tensor:
    """Return A within the coordinates of the rows; those of the source may be the first of the target's."""
    _check_invertible(source)
    sigma_x, sigma_y = source.covariance, target.covariance
    core = solve_riccati(
        sigma_x.reshape(-1, *sigma_x.shape[-2:]),
        sigma_y.reshape(-1, *sigma_y.shape[-2:]),
        source.floor.reshape(-1),
        target.floor.reshape(-1),
    )
    return core.reshape(*sigma_x.shape[:-1], sigma_y.shape[-1])


def transported(source: Moments, target: Moments) -> Tensor:
    """Return the rows of the source, moved by A, `[batch, n, width]`; on a GPU without forming A."""
    rows, width = source.rows, target.rows.shape[-1]
    needs_gradient = torch.is_grad_enabled() and (rows.requires_grad or target.rows.requires_grad)
    if not rows.is_cuda or needs_gradient or rows.shape[-1] < width:
        return rows @ linear_part(source, target)
    _check_invertible(source)
    return push_forward(rows, source.covariance, target.covariance, source.floor, target.floor)


def span_coordinates(both: Tensor) -> tuple[Tensor, Tensor]:
    """Return coordinates of x and y, stacked as `[..., 2n, d]`, in an orthonormal basis of their span.

    The basis starts with the span of x, so that only the first n of the 2n coordinates of x differ from
    0; those n are returned, `[..., n, n]`, and all of y, `[..., n, 2n]`. The triangular factor of a QR
    decomposition holds them; the basis itself is never formed.

    With gradients the basis is formed (and x has all its 2n coordinates), but held fixed. That is exact: a
    function of both samples that rotations and reflections leave alone does not change to first order when
    a row moves out of the span, since the reflected move gives the same value.
    """
    n = both.shape[-2] // 2
    if torch.is_grad_enabled() and both.requires_grad:
        inside = both @ _basis(both)
        return inside[..., :n, :], inside[..., n:, :]
    lower = torch.linalg.qr(both.mT, mode="r")[1].mT
    return lower[..., :n, :n], lower[..., n:, :]


def coordinates_from_gram(of_x: Tensor, across: Tensor, of_y: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return what `span_coordinates` does, from XXᵀ, XYᵀ and YYᵀ, or None where that fails.

    This takes far less time. It is exact to the rounding of the Gram matrices: as good where covariances are
    lifted by far more than that, as Ledoit and Wolf's are, but not where plain ones are to be inverted.
    """
    n = of_x.shape[-1]
    traces = (gram.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None] for gram in (of_x, of_y))
    size_x, size_y = (torch.where(trace > 0, trace, 1.0).sqrt() for trace in traces)
    gram = of_x.new_empty(*of_x.shape[:-2], 2 * n, 2 * n)
    gram[..., :n, :n] = of_x / size_x.square()
    gram[..., n:, :n] = across.mT / (size_x * size_y)
    gram[..., n:, n:] = of_y / size_y.square()
    gram.diagonal(dim1=-2, dim2=-1).add_(_ROUNDING)
    lower, info = torch.linalg.cholesky_ex(gram)  # which reads the lower triangle
    if bool(info.any()):
        return None
    return lower[..., :n, :n] * size_x, lower[..., n:, :] * size_y


@torch.no_grad()
def _basis(both: Tensor) -> Tensor:
    """Return an orthonormal basis of the span of all rows.

    Householder reflections: the columns are orthonormal and reproduce the rows even where the rows
    depend on one another.
    """
    basis: Tensor = torch.linalg.qr(both.mT)[0]
    return basis


def _check_invertible(source: Moments) -> None:
    n, width = source.rows.shape[-2:]
    if n <= width and source.ridge.value == 0 and bool((source.floor == 0).any()):
        raise singular_error()  # of rank n − 1 at most; rounding may hide it from a decomposition


def _joint_basis(source: Moments, target: Moments) -> Tensor | None:
    """Return an orthonormal basis `[..., d, 2n]` of a space that holds the rows of both, if they are wide."""
    if not (source.wide and target.wide):
        return None
    return _basis(torch.cat((source.rows, target.rows), dim=-2))


def _check_same_space(source: Moments, target: Moments) -> None:
    for side in (source, target):
        if not isinstance(side, Moments):
            raise InputError(f"expected moments(x), moments(y), got {type(side).__name__}")
    if source.mean.shape != target.mean.shape:
        raise InputError(
            "expected moments in one space, got means of shape "
            f"{list(source.mean.shape)} and {list(target.mean.shape)}"
        )
