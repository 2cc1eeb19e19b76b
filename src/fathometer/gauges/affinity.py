"""The affinity score: how far a function is from an affine map, given its inputs and outputs.

ρ = 1 − W₂(T X, Y) / sqrt(2 Tr Σ(Y)), Eq. (5), where T is the affine optimal map between the normal
approximations of X and Y, Eq. (4). X and Y are `[samples, features]` or `[batch, samples, features]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fathometer.errors import FathometerError, InputError, check_choice
from fathometer.gauges.gauge import indices_of_equal
from fathometer.gauges.samples import Pair, check_together, prepare
from fathometer.gauges.scoring import score_groups
from fathometer.transport.arrays import Array
from fathometer.transport.moments import DEFAULT_RIDGE, CovarianceKind, Ridge, as_ridge


@dataclass(frozen=True)
class AffinityScore:
    """An affinity score and how it came about.

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

    value: float
    w2: float
    bound: float
    shrinkage_x: float
    shrinkage_y: float
    coupling: str
    covariance: CovarianceKind
    ridge: Ridge
    n: int
    d: int

    def __float__(self) -> float:
        return self.value


class AffinityScores(tuple[AffinityScore, ...]):
    """The scores of a batch: a tuple of `AffinityScore`, with what differs between them as arrays too.

    Attributes:
        value: ρ of each item.
        w2: W₂(T X, Y) of each item.
        bound: the bound on each W₂.
        shrinkage_x: the shrinkage of each Σ(X).
        shrinkage_y: the shrinkage of each Σ(Y).
        coupling: the coupling of each item.
        n: the number of samples of each item.
        d: the number of features of each item.
    """

    __slots__ = ()

    value: npt.NDArray[np.float64]
    w2: npt.NDArray[np.float64]
    bound: npt.NDArray[np.float64]
    shrinkage_x: npt.NDArray[np.float64]
    shrinkage_y: npt.NDArray[np.float64]
    coupling: npt.NDArray[np.str_]
    n: npt.NDArray[np.int64]
    d: npt.NDArray[np.int64]

    def __getattr__(self, name: str) -> npt.NDArray[np.generic]:
        if name not in AffinityScores.__annotations__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return np.array([getattr(score, name) for score in self])

    def __float__(self) -> float:
        raise InputError(f"expected one score, got a batch of {len(self)}; use .value, or an item of it")


def affinity_score(
    x: Array,
    y: Array,
    *,
    covariance: CovarianceKind = "ledoit-wolf",
    ridge: Ridge | float = DEFAULT_RIDGE,
) -> AffinityScore | AffinityScores:
    """Score how affine the function from `x` to `y` is, Eq. (5), and say how the score came about.

    A batch `[batch, samples, features]` is computed together and gives `AffinityScores`.

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
    pair = prepare(x, y, finite=False)
    if pair.x.values.ndim == 2:
        return _scores([pair], covariance, ridge)[0]
    try:
        return AffinityScores(_scores([pair], covariance, ridge))
    except FathometerError:
        resolutions = pair.x.resolution, pair.y.resolution
        items = (
            prepare(*item, resolutions, finite=False) for item in zip(pair.x.items, pair.y.items, strict=True)
        )
        _name_the_failing("item", items, covariance, ridge)
        raise


def affinity_scores(
    pairs: Iterable[tuple[Array, Array]],
    *,
    covariance: CovarianceKind = "ledoit-wolf",
    ridge: Ridge | float = DEFAULT_RIDGE,
) -> AffinityScores:
    """Score many pairs `[samples, features]` of any width, e.g. of one network's sites.

    The scores are the same as one by one; on a GPU, pairs of similar width are solved together.

    Example:
        >>> import torch
        >>> wide, narrow = torch.randn(50, 20), torch.randn(50, 4)
        >>> scores = affinity_scores([(wide, wide.relu()), (narrow, 2 * narrow)])
        >>> round(float(scores[1]), 6)
        1.0
    """
    checked = [_as_single_pair(index, pair) for index, pair in enumerate(pairs)]
    indices = indices_of_equal((p.x.values.shape, p.x.values.device, p.y.resolution) for p in checked)
    groups = []
    for alike in indices:
        x = torch.stack([checked[index].x.values for index in alike])
        y = torch.stack([checked[index].y.values for index in alike])
        first = checked[alike[0]]
        groups.append(prepare(x, y, (first.x.resolution, first.y.resolution), finite=False))
    try:
        if groups:
            check_together(groups)
        scores = _scores(groups, covariance, ridge)
    except FathometerError:
        _name_the_failing("pair", checked, covariance, ridge)
        raise
    in_order = sorted(zip(chain.from_iterable(indices), scores, strict=True), key=itemgetter(0))
    return AffinityScores(score for _, score in in_order)


def affinity(
    x: Array,
    y: Array,
    *,
    covariance: CovarianceKind = "ledoit-wolf",
    ridge: Ridge | float = DEFAULT_RIDGE,
) -> Tensor:
    """Compute the affinity score as a plain tensor, `[]` or `[batch]`, with gradients in `x` and `y`.

    The optimal coupling is held fixed, which by the envelope theorem is the gradient wherever the
    coupling is unique. At a score of 1, where the root has none, the gradient is 0.

    Example:
        >>> import torch
        >>> x = torch.randn(64, 8, requires_grad=True)
        >>> (1 - affinity(x, torch.tanh(x))).backward()
        >>> x.grad.shape
        torch.Size([64, 8])
    """
    pair = prepare(x, y, finite=False)
    check_choice("covariance", covariance, CovarianceKind)
    value = score_groups([pair], covariance, as_ridge(ridge))[0].value
    sides = [pair.x.values, pair.y.values]
    if torch.is_grad_enabled() and any(side.requires_grad for side in sides):
        nothing = sum((side - side.detach()).sum() for side in sides)
        value = value + 0 * nothing  # a constant output has a gradient too: zero
    return pair.x.each(value)


def affinity_of_batches(batches: Sequence[Pair], covariance: CovarianceKind = "ledoit-wolf") -> list[Tensor]:
    """Compute the affinity scores of several batches of different widths, `[items]` of each."""
    values = score_groups(batches, covariance, DEFAULT_RIDGE)[0].value
    return list(values.split([len(batch.x.items) for batch in batches]))


@torch.no_grad()
def _scores(groups: Sequence[Pair], covariance: CovarianceKind, ridge: Ridge | float) -> list[AffinityScore]:
    """Return the result of every item of every group."""
    check_choice("covariance", covariance, CovarianceKind)
    ridge = as_ridge(ridge)
    numbers, coupling = score_groups(groups, covariance, ridge)
    shapes = [pair.x.values.shape[-2:] for pair in groups for _ in range(len(pair.x.items))]
    columns: list[list[float]] = torch.stack(numbers).tolist()
    return [
        AffinityScore(value, w2, bound, shrinkage_x, shrinkage_y, kind, covariance, ridge, n, d)
        for value, w2, bound, shrinkage_x, shrinkage_y, kind, (n, d) in zip(
            *columns, coupling, shapes, strict=True
        )
    ]


def _name_the_failing(
    what: str, pairs: Iterable[Pair], covariance: CovarianceKind, ridge: Ridge | float
) -> None:
    """Raise the error of the first pair that has one, with its index."""
    for index, pair in enumerate(pairs):
        try:
            _scores([pair], covariance, ridge)
        except FathometerError as error:
            raise type(error)(f"{what} {index}: {error}") from error


def _as_single_pair(index: int, pair: tuple[Array, Array]) -> Pair:
    try:
        x, y = pair
    except (TypeError, ValueError) as error:
        raise InputError(f"pair {index}: expected (x, y), got {type(pair).__name__}") from error
    try:
        prepared = prepare(x, y, finite=False)
    except InputError as error:
        raise InputError(f"pair {index}: {error}") from error
    if prepared.x.values.ndim != 2:
        shape = list(prepared.x.values.shape)
        raise InputError(f"pair {index}: expected [samples, features], got shape {shape}")
    return prepared
