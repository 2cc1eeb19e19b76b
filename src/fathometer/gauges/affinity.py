"""The affinity score: how far a function is from an affine map, given its inputs and outputs.

ρ = 1 − W₂(T X, Y) / sqrt(2 Tr Σ(Y)), Eq. (5), where T is the affine optimal map between the normal
approximations of X and Y, Eq. (4). X and Y are `[samples, features]` or `[batch, samples, features]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fathometer.arrays import Array, as_pair, resolution
from fathometer.errors import InputError
from fathometer.gauges.scoring import score_groups
from fathometer.transport.moments import DEFAULT_RIDGE, CovarianceKind, Ridge, as_ridge, check_covariance

_PER_ITEM = ("value", "w2", "bound", "shrinkage_x", "shrinkage_y", "coupling")


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
        return replace(self, **{name: getattr(self, name)[index].item() for name in _PER_ITEM})

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
    a, b = as_pair(x, y, finite=False)
    scores = _scores([_as_group(a, b)], covariance, ridge, resolution(y))
    if a.ndim == 2:
        return scores[0]
    numbers: dict[str, Any] = {n: np.array([getattr(score, n) for score in scores]) for n in _PER_ITEM}
    return replace(scores[0], **numbers)


def affinity_scores(
    pairs: Iterable[tuple[Array, Array]],
    *,
    covariance: CovarianceKind = "ledoit-wolf",
    ridge: Ridge | float = DEFAULT_RIDGE,
) -> list[AffinityScore]:
    """The affinity score of many pairs `[samples, features]` of any width, e.g. of one network's sites.

    The same scores as one by one; on a GPU, pairs of similar width are solved together.

    Example:
        >>> import torch
        >>> wide, narrow = torch.randn(50, 20), torch.randn(50, 4)
        >>> scores = affinity_scores([(wide, wide.relu()), (narrow, 2 * narrow)])
        >>> round(float(scores[1]), 6)
        1.0
    """
    checked = [_as_single_pair(place, x, y) for place, (x, y) in enumerate(pairs)]
    kinds: dict[tuple[float, torch.device], dict[torch.Size, list[int]]] = {}
    for place, (a, _, epsilon) in enumerate(checked):
        kinds.setdefault((epsilon, a.device), {}).setdefault(a.shape, []).append(place)
    found: dict[int, AffinityScore] = {}
    for (epsilon, _), shapes in kinds.items():
        groups = [
            (torch.stack([checked[p][0] for p in places]), torch.stack([checked[p][1] for p in places]))
            for places in shapes.values()
        ]
        try:
            scores = _scores(groups, covariance, ridge, epsilon)
        except InputError:
            _name_the_pair(checked, covariance, ridge, epsilon)
            raise
        found.update(zip((p for places in shapes.values() for p in places), scores, strict=True))
    return [found[place] for place in range(len(checked))]


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
    a, b = as_pair(x, y, finite=False)
    check_covariance(covariance)
    numbers, _ = score_groups([_as_group(a, b)], covariance, as_ridge(ridge), resolution(y))
    value = numbers.value + 0 * (a.sum() + b.sum())  # a constant output has a gradient too: zero
    return value[0] if a.ndim == 2 else value


@torch.no_grad()
def _scores(
    groups: Sequence[tuple[Tensor, Tensor]],
    covariance: CovarianceKind,
    ridge: Ridge | float,
    epsilon: float,
) -> list[AffinityScore]:
    """The result of every item of every group."""
    check_covariance(covariance)
    ridge = as_ridge(ridge)
    numbers, coupling = score_groups(groups, covariance, ridge, epsilon)
    shapes = [x.shape[1:] for x, _ in groups for _ in range(len(x))]
    columns: list[list[float]] = torch.stack(numbers).tolist()
    return [
        AffinityScore(value, w2, bound, shrinkage_x, shrinkage_y, kind, covariance, ridge, n, d)
        for value, w2, bound, shrinkage_x, shrinkage_y, kind, (n, d) in zip(
            *columns, coupling, shapes, strict=True
        )
    ]


def _name_the_pair(
    pairs: Sequence[tuple[Tensor, Tensor, float]],
    covariance: CovarianceKind,
    ridge: Ridge | float,
    epsilon: float,
) -> None:
    """Raise the error of the first pair that has one, with its place."""
    for place, (a, b, _) in enumerate(pairs):
        try:
            _scores([_as_group(a, b)], covariance, ridge, epsilon)
        except InputError as error:
            raise InputError(f"pair {place}: {error}") from error


def _as_group(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:])


def _as_single_pair(place: int, x: Array, y: Array) -> tuple[Tensor, Tensor, float]:
    try:
        a, b = as_pair(x, y, finite=False)
    except InputError as error:
        raise InputError(f"pair {place}: {error}") from error
    if a.ndim != 2:
        raise InputError(f"pair {place}: expected [samples, features], got shape {list(a.shape)}")
    return a, b, resolution(y)
