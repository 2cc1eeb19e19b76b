"""Eq. (5), step by step, for groups of pairs `[items, n, d]` that have been converted to float64."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from fathometer.errors import InputError, NumericalError
from fathometer.gauges.batching import Batch, Group, arrange, pieces
from fathometer.transport.arrays import check_finite, exceeds_rounding, reach
from fathometer.transport.assignment import paired_cost, start_matching
from fathometer.transport.gaussian import affine_residual_bound, transported
from fathometer.transport.moments import CovarianceKind, Ridge, centre, estimate, is_wide
from fathometer.transport.span import span_coordinates

_AHEAD = 3  # batches that a GPU may begin before the first is finished
_ROUNDING = 1e-13  # of the bound: what is left of W₂ between equal samples


class Numbers(NamedTuple):
    """One number an item, `[items]` each."""

    value: Tensor
    w2: Tensor
    bound: Tensor
    shrinkage_x: Tensor
    shrinkage_y: Tensor


_Result: TypeAlias = tuple[Numbers, list[bool]]


def score_groups(
    groups: Sequence[Group],
    covariance: CovarianceKind,
    ridge: Ridge,
    epsilon: float,
) -> tuple[Numbers, list[str]]:
    """Numbers and coupling of every item of every group, one after the other.

    `epsilon` is the relative spacing of numbers in the dtype that the outputs came in.
    """
    first = groups[0][0]
    items = sum(len(x) for x, _ in groups)
    blank = torch.zeros(items, dtype=first.dtype, device=first.device)
    numbers, coupling = Numbers(blank + 1, blank, blank, blank, blank), ["constant"] * items
    batches = arrange(_prepare(x, y, start, epsilon, covariance) for x, y, start in pieces(groups))
    for places, (part, proved) in _results(batches, covariance, ridge):
        pairs = zip(numbers, part, strict=True)
        numbers = Numbers(*(whole.index_copy(0, places, new) for whole, new in pairs))
        for place, identity in zip(places.tolist(), proved, strict=True):
            coupling[place] = "identity" if identity else "assignment"
    return numbers, coupling


def _prepare(x: Tensor, y: Tensor, start: int, epsilon: float, covariance: CovarianceKind) -> Batch:
    """The pairs whose output varies, centred; wide ones in the span of their samples."""
    check_finite(x, "x")
    check_finite(y, "y")
    n, d = x.shape[-2:]
    (_, x), (mean, y) = centre(x), centre(y)
    still = reach(x, "x") == 0
    varies = (reach(y, "y") > 0) & exceeds_rounding(mean, y, epsilon)
    if bool((still & varies).any()):
        raise InputError(
            "x is constant but y varies: no function of x gives that; "
            "expected y = f(x), so check that both sides come from the same call"
        )
    if not bool(varies.all()):
        x, y = x[varies], y[varies]
    if is_wide(x) or (d == 2 * n and not x.is_cuda):  # block form pays for the QR on a CPU
        both = torch.cat((x, y), dim=-2)
        del x, y  # half of the memory that is held while the QR decomposition runs
        x, y = span_coordinates(both, shrunk=covariance == "ledoit-wolf")
    return Batch(x, y, torch.full((len(x),), d, device=x.device), start + varies.nonzero().flatten())


def _results(
    batches: Iterable[Batch], covariance: CovarianceKind, ridge: Ridge
) -> Iterator[tuple[Tensor, _Result]]:
    """Items and result of each batch; on a GPU, some batches are begun before the first is finished."""
    begun: deque[tuple[Tensor, Callable[[], _Result]]] = deque()
    for batch in batches:
        begun.append((batch.items, _begin(batch, covariance, ridge)))
        if len(begun) > (_AHEAD if batch.y.is_cuda else 0):
            items, finish = begun.popleft()
            yield items, finish()
    for items, finish in begun:
        yield items, finish()


def _begin(batch: Batch, covariance: CovarianceKind, ridge: Ridge) -> Callable[[], _Result]:
    """Up to the search for a coupling, which goes on in threads; the function returned does the rest."""
    x, y = batch.x, batch.y
    of_x = estimate(torch.zeros_like(x[:, 0]), x, covariance, ridge, batch.dimension)
    of_y = estimate(torch.zeros_like(y[:, 0]), y, covariance, ridge, batch.dimension)
    moved = transported(of_x, of_y)
    bound = affine_residual_bound(of_y)
    matching = start_matching(moved, y)

    def finish() -> _Result:
        permutation, proved = matching()
        share = paired_cost(moved, y, permutation).div(bound.square())
        if not bool(share.isfinite().all()):
            raise NumericalError(f"the score of a pair {list(y.shape[1:])} is not finite; raise the ridge")
        left = share > _ROUNDING**2  # below, the root has no gradient but that of noise
        ratio = torch.where(left, torch.where(left, share, 1.0).sqrt(), 0.0)
        return Numbers((1 - ratio).clamp(min=0), ratio * bound, bound, of_x.shrinkage, of_y.shrinkage), proved

    return finish
