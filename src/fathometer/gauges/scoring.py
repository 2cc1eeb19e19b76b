"""The affinity score of many pairs at a time: checked, centred, batched, Eq. (5) step by step.

A group holds pairs of one shape, `[batch, n, d]` on either side. On a GPU, groups of different width are
solved together, and the search for a coupling goes on beside the work of the next batch.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from fathometer.arrays import check_finite
from fathometer.errors import InputError, NumericalError
from fathometer.transport.assignment import paired_cost, start_matching
from fathometer.transport.gaussian import affine_residual_bound, linear_part
from fathometer.transport.moments import CovarianceKind, Ridge, centre, estimate, is_wide
from fathometer.transport.span import span_coordinates

_TINY = 1e-60
_CHUNK = {"cpu": 2**24, "cuda": 2**28}  # entries of the largest matrix that is held at a time
_NARROWEST = 256  # on a GPU a batch of narrower pairs takes no less time
_AHEAD = 3  # batches that a GPU may begin before the first is finished


class Numbers(NamedTuple):
    """One number an item, `[items]` each."""

    value: Tensor
    w2: Tensor
    bound: Tensor
    shrinkage_x: Tensor
    shrinkage_y: Tensor


class _Batch(NamedTuple):
    """Centred pairs that vary, in coordinates that leave distances as they are."""

    x: Tensor  # [batch, n, width], or fewer columns: those that follow are zero
    y: Tensor  # [batch, n, width]
    dimension: Tensor  # [batch], the number of features that they came with
    items: Tensor  # [batch], which of all items they are


_Result: TypeAlias = tuple[Numbers, list[bool]]


def score_groups(
    groups: Sequence[tuple[Tensor, Tensor]],
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
    batches = _arrange(_prepare_all(groups, epsilon))
    for places, (part, proved) in _results(batches, covariance, ridge):
        pairs = zip(numbers, part, strict=True)
        numbers = Numbers(*(whole.index_copy(0, places, new) for whole, new in pairs))
        for place, identity in zip(places.tolist(), proved, strict=True):
            coupling[place] = "identity" if identity else "assignment"
    return numbers, coupling


def _results(
    batches: Iterable[_Batch], covariance: CovarianceKind, ridge: Ridge
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


def _begin(batch: _Batch, covariance: CovarianceKind, ridge: Ridge) -> Callable[[], _Result]:
    """Eq. (5), step by step, up to the search for a coupling; the function returned does the rest."""
    x, y = batch.x, batch.y
    of_x = estimate(torch.zeros_like(x[:, 0]), x, covariance, ridge, batch.dimension)
    of_y = estimate(torch.zeros_like(y[:, 0]), y, covariance, ridge, batch.dimension)
    moved = x @ linear_part(of_x, of_y)
    bound = affine_residual_bound(of_y)
    matching = start_matching(moved, y)

    def finish() -> _Result:
        permutation, proved = matching()
        w2 = _safe_sqrt(paired_cost(moved, y, permutation))
        value = (1 - w2 / bound).clamp(0, 1)
        if not bool(value.isfinite().all()):
            raise NumericalError(
                f"the score of {len(y)} pairs {list(y.shape[1:])} is not finite; raise the ridge"
            )
        return Numbers(value, w2, bound, of_x.shrinkage, of_y.shrinkage), proved

    return finish


def _prepare_all(groups: Sequence[tuple[Tensor, Tensor]], epsilon: float) -> list[_Batch]:
    starts = [0]
    for x, _ in groups:
        starts.append(starts[-1] + len(x))
    return [_prepare(x, y, epsilon, start) for (x, y), start in zip(groups, starts, strict=False)]


def _prepare(x: Tensor, y: Tensor, epsilon: float, start: int) -> _Batch:
    """The pairs of a group whose output varies, centred; wide ones in the span of their samples."""
    check_finite(x, "x")
    check_finite(y, "y")
    d = x.shape[-1]
    (_, x), (mean, y) = centre(x), centre(y)
    reach_x, reach_y = _reach(x, "x"), _reach(y, "y")
    varies = (reach_y > 0) & _exceeds_rounding(mean, y, epsilon)
    _check_inputs_vary(varies & (reach_x == 0))
    if not bool(varies.all()):
        x, y = x[varies], y[varies]
    if is_wide(x) or (d == 2 * x.shape[-2] and not x.is_cuda):  # block form pays for the QR on a CPU
        both = torch.cat((x, y), dim=-2)
        del x, y  # half of the memory that is held while the QR decomposition runs
        x, y = span_coordinates(both)
    return _Batch(x, y, torch.full((len(x),), d, device=x.device), start + varies.nonzero().flatten())


def _arrange(batches: Iterable[_Batch]) -> Iterator[_Batch]:
    """Batches that fit in memory; on a GPU, of several widths together, the narrow ones first.

    Zeros are appended to the narrower pairs: features in which neither side varies. They leave the
    moments, which know the true dimension, and the distances as they are.
    """
    alike: dict[tuple[int, int, int], list[_Batch]] = defaultdict(list)
    for place, batch in enumerate(batches):
        n, width = batch.y.shape[-2:]
        if batch.y.is_cuda:
            alike[max(_NARROWEST, 1 << (width - 1).bit_length()), n, 0].append(batch)
        elif len(batch.items):
            alike[width, n, place].append(batch)
    for key in sorted(alike):
        whole = _together(alike[key])
        n, width = whole.y.shape[-2:]
        size = max(1, _CHUNK.get(whole.y.device.type, _CHUNK["cpu"]) // (n * max(n, width)))
        for i in range(0, len(whole.items), size):
            yield _Batch(*(part[i : i + size] for part in whole))


def _together(parts: Sequence[_Batch]) -> _Batch:
    if not parts[0].y.is_cuda:
        return parts[0]
    width = max(part.y.shape[-1] for part in parts)

    def joined(samples: Sequence[Tensor]) -> Tensor:
        return torch.cat([torch.nn.functional.pad(s, (0, width - s.shape[-1])) for s in samples])

    return _Batch(
        joined([part.x for part in parts]),
        joined([part.y for part in parts]),
        torch.cat([part.dimension for part in parts]),
        torch.cat([part.items for part in parts]),
    )


def _safe_sqrt(squared: Tensor) -> Tensor:
    """The root, with gradient 0 instead of infinity at 0."""
    positive = squared > 0
    return torch.where(positive, torch.where(positive, squared, 1.0).sqrt(), 0.0)


def _reach(rows: Tensor, name: str) -> Tensor:
    """The largest entry of each item; products of two squares of it must stay within float64."""
    reach = torch.linalg.vector_norm(rows.detach(), torch.inf, dim=(-2, -1))
    wrong = (reach > 1 / _TINY) | ((reach > 0) & (reach < _TINY))
    if bool(wrong.any()):
        raise InputError(
            f"{name}: expected a spread between {_TINY:g} and {1 / _TINY:g}, "
            f"got {float(reach[wrong][0]):g}; rescale it first (the score does not depend on scale)"
        )
    return reach


def _exceeds_rounding(mean: Tensor, rows: Tensor, epsilon: float) -> Tensor:
    """Whether each item varies by more than the rounding of the dtype that it came in.

    A saturated Tanh flips between 1 and the number before it: that is a constant, not a function.
    """
    spread = torch.linalg.matrix_norm(rows.detach()).square()
    return spread > epsilon**2 * (spread + rows.shape[-2] * mean.detach().square().sum(-1))


def _check_inputs_vary(stuck: Tensor) -> None:
    if bool(stuck.any()):
        items = stuck.nonzero().flatten().tolist()
        where = f" (items {items} of the batch)" if len(stuck) > 1 else ""
        raise InputError(
            f"x is constant but y varies{where}: no function of x gives that; "
            "expected y = f(x), so check that both sides come from the same call"
        )
