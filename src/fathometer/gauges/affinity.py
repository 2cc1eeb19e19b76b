"""The affinity score: how far a function is from an affine map, given its inputs and outputs.

ρ = 1 − W₂(T X, Y) / sqrt(2 Tr Σ(Y)), Eq. (5), where T is the affine optimal map between the normal
approximations of X and Y, Eq. (4). X and Y are `[samples, features]` or `[batch, samples, features]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fathometer.arrays import Array, as_pair, resolution
from fathometer.errors import InputError, NumericalError
from fathometer.transport.assignment import optimal_permutation, paired_cost
from fathometer.transport.gaussian import affine_map, affine_residual_bound
from fathometer.transport.moments import (
    DEFAULT_RIDGE,
    CovarianceKind,
    Ridge,
    as_ridge,
    centre,
    check_covariance,
    estimate,
    is_wide,
)
from fathometer.transport.span import span_coordinates

_TINY = 1e-60
_CHUNK = {"cpu": 2**24, "cuda": 2**28}  # entries of the largest matrix that is held at a time


@dataclass(frozen=True)
class AffinityScore:
    """An affinity score and how it came about.

    From samples `[n, d]` the numbers are floats. From a batch `[batch, n, d]` they are arrays `[batch]`,
    and the result can be indexed and iterated over, a score at a time.

    Attributes:
        value: ρ, from 0 (as far from affine as can be) to 1 (affine).
        w2: W₂(T X, Y).
        bound: sqrt(2 Tr Σ(Y)). A shrunk covariance is not quite that of the sample, so `w2` can
            exceed `bound` in rare cases; the score is then 0.
        shrinkage_x: Ledoit-Wolf shrinkage of Σ(X); 0 with `covariance="sample"`.
        shrinkage_y: the same of Σ(Y).
        coupling: `identity` (row i to row i, proved optimal), `assignment` (an optimal permutation was
            searched for) or `constant` (Y does not vary beyond the rounding of its dtype: an affine
            image of anything, with score 1).
        covariance: the estimator.
        ridge: what was added to the diagonal of both covariances.
        n: samples.
        d: features.
    """

    value: float | npt.NDArray[np.float64]
    w2: float | npt.NDArray[np.float64]
    bound: float | npt.NDArray[np.float64]
    shrinkage_x: float | npt.NDArray[np.float64]
    shrinkage_y: float | npt.NDArray[np.float64]
    coupling: str | npt.NDArray[np.str_]
    covariance: CovarianceKind
    ridge: Ridge
    n: int
    d: int

    def __float__(self) -> float:
        if not isinstance(self.value, float):
            raise InputError(
                f"expected one score, got a batch of {len(self.value)}; use .value, or an item of it"
            )
        return self.value

    def __getitem__(self, index: int) -> AffinityScore:
        if isinstance(self.value, float):
            raise TypeError("a single score cannot be indexed")
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        item = {k: v[index].item() for k, v in arrays.items() if isinstance(v, np.ndarray)}
        return replace(self, **item)

    def __iter__(self) -> Iterator[AffinityScore]:
        return (self[i] for i in range(np.size(self.value)))


def affinity_score(
    x: Array,
    y: Array,
    *,
    covariance: CovarianceKind = "ledoit-wolf",
    ridge: Ridge | float = DEFAULT_RIDGE,
) -> AffinityScore:
    """How affine is the function that took `x` to `y`? Eq. (5), with everything that led to it.

    Args:
        x: inputs of the function, `[samples, features]` or `[batch, samples, features]`.
        y: its outputs, of the same shape; row i is the image of row i of `x`.
        covariance: `"ledoit-wolf"` (shrunk, the paper's choice) or `"sample"`.
        ridge: added to the diagonal of both covariances; a plain number is relative to their mean
            variance, `Ridge(1e-6, relative=False)` is what the paper's authors add.

    Example:
        >>> import numpy as np
        >>> x = np.linspace(-1, 1, 1000)[:, None]
        >>> score = affinity_score(x, x**3, covariance="sample")
        >>> round(float(score), 3), score.coupling
        (0.711, 'identity')
    """
    with torch.no_grad():
        a, b = as_pair(x, y)
        parts = _measure(a, b, covariance, as_ridge(ridge), resolution(y))
    single = a.ndim == 2
    numbers = {
        name: tensor.item() if single else tensor.cpu().numpy()
        for name, tensor in parts.numbers._asdict().items()
    }
    coupling = parts.coupling[0] if single else np.array(parts.coupling)
    n, d = a.shape[-2:]
    return AffinityScore(**numbers, coupling=coupling, covariance=covariance, ridge=as_ridge(ridge), n=n, d=d)


def affinity(
    x: Array,
    y: Array,
    *,
    covariance: CovarianceKind = "ledoit-wolf",
    ridge: Ridge | float = DEFAULT_RIDGE,
) -> Tensor:
    """The affinity score as a plain tensor, `[]` or `[batch]`, with gradients in `x` and `y`.

    The optimal coupling is held fixed, which by the envelope theorem is the gradient wherever the
    coupling is unique. At a score of exactly 1, where the root has none, the gradient is 0.

    Example:
        >>> import torch
        >>> x = torch.randn(64, 8, requires_grad=True)
        >>> (1 - affinity(x, torch.tanh(x))).backward()
        >>> x.grad.shape
        torch.Size([64, 8])
    """
    a, b = as_pair(x, y)
    value = _measure(a, b, covariance, as_ridge(ridge), resolution(y)).numbers.value
    return value[0] if a.ndim == 2 else value


class _Numbers(NamedTuple):
    """One number an item, `[batch]` each."""

    value: Tensor
    w2: Tensor
    bound: Tensor
    shrinkage_x: Tensor
    shrinkage_y: Tensor


class _Parts(NamedTuple):
    numbers: _Numbers
    coupling: list[str]


def _measure(x: Tensor, y: Tensor, covariance: CovarianceKind, ridge: Ridge, epsilon: float) -> _Parts:
    """The score of each item: constant outputs set apart, the rest in chunks that fit in memory."""
    check_covariance(covariance)
    n, d = x.shape[-2:]
    mean_y, y = centre(y.reshape(-1, n, d))
    _, x = centre(x.reshape(-1, n, d))
    _check_range(x, "x")
    _check_range(y, "y")
    varies = _varies(mean_y, y, epsilon)
    _check_inputs_vary(x, varies)
    coupling = ["constant"] * len(x)
    blank = torch.zeros(len(x), dtype=x.dtype, device=x.device)
    numbers = _Numbers(blank + 1, blank, blank, blank, blank)
    at_a_time = max(1, _CHUNK.get(x.device.type, _CHUNK["cpu"]) // (n * max(n, min(d, 2 * n))))
    for items in torch.split(varies.nonzero().flatten(), at_a_time):
        part, proved = _score_centred(x[items], y[items], covariance, ridge)
        pairs = zip(numbers, part, strict=True)
        numbers = _Numbers(*(whole.index_copy(0, items, new) for whole, new in pairs))
        for item, identity in zip(items.tolist(), proved, strict=True):
            coupling[item] = "identity" if identity else "assignment"
    return _Parts(numbers, coupling)


def _score_centred(
    x: Tensor, y: Tensor, covariance: CovarianceKind, ridge: Ridge
) -> tuple[_Numbers, list[bool]]:
    """Eq. (5), step by step, for centred samples of which the second varies."""
    dimension = x.shape[-1]
    if is_wide(x):
        x, y = span_coordinates(x, y)
    zero = torch.zeros_like(x[:, 0])
    of_x = estimate(zero, x, covariance, ridge, dimension)
    of_y = estimate(zero, y, covariance, ridge, dimension)
    moved = affine_map(of_x, of_y).stretch(x)
    permutation, proved = optimal_permutation(moved, y)
    w2 = _safe_sqrt(paired_cost(moved, y, permutation))
    bound = affine_residual_bound(of_y)
    value = (1 - w2 / bound).clamp(0, 1)
    if not bool(value.isfinite().all()):
        raise NumericalError(
            f"the score of {len(x)} pairs of shape {list(x.shape[1:])} is not finite; raise the ridge"
        )
    return _Numbers(value, w2, bound, of_x.shrinkage, of_y.shrinkage), proved


def _safe_sqrt(squared: Tensor) -> Tensor:
    """The root, with gradient 0 instead of infinity at 0."""
    positive = squared > 0
    return torch.where(positive, torch.where(positive, squared, 1.0).sqrt(), 0.0)


def _varies(mean: Tensor, rows: Tensor, epsilon: float) -> Tensor:
    """Whether each item varies by more than the rounding of the dtype that it came in.

    A saturated Tanh flips between 1 and the number before it: that is a constant, not a function.
    """
    spread = rows.square().sum((-2, -1))
    return spread > epsilon**2 * (spread + rows.shape[-2] * mean.square().sum(-1))


def _check_range(rows: Tensor, name: str) -> None:
    """Squares, and products of two of them, must stay within float64."""
    largest = rows.detach().abs().amax((-2, -1))
    if bool(((largest > 1 / _TINY) | ((largest > 0) & (largest < _TINY))).any()):
        raise InputError(
            f"{name}: expected a spread between {_TINY:g} and {1 / _TINY:g}, got {largest.tolist()}; "
            "rescale it first (the score does not depend on scale)"
        )


def _check_inputs_vary(x: Tensor, outputs_vary: Tensor) -> None:
    stuck = outputs_vary & (x == 0).flatten(1).all(1)
    if bool(stuck.any()):
        items = stuck.nonzero().flatten().tolist()
        where = f" (items {items} of the batch)" if len(x) > 1 else ""
        raise InputError(
            f"x is constant but y varies{where}: no function of x gives that; "
            "expected y = f(x), so check that both sides come from the same call"
        )
