"""Compute Eq. (5), step by step, for groups of pairs that have been converted to float64.

Many pairs are put into batches: small enough for memory, few enough for a GPU.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from fathometer.errors import InputError, NumericalError
from fathometer.gauges.samples import Pair
from fathometer.transport.arrays import check_finite
from fathometer.transport.assignment import paired_cost, start_matching
from fathometer.transport.gaussian import (
    affine_residual_bound,
    coordinates_from_gram,
    span_coordinates,
    transported,
)
from fathometer.transport.moments import CovarianceKind, Ridge, estimate, is_wide

_BATCHES_AHEAD = 3  # that a GPU may begin before the first is finished
_ROUNDING = 1e-13  # of the bound: what is left of W₂ between equal samples
_CHUNK = {"cpu": 2**24, "cuda": 2**28}  # entries of the largest matrix that is held at a time
_NARROWEST = 256  # on a GPU a batch of narrower pairs takes no less time


class ScoreParts(NamedTuple):
    """One number per item, `[items]` each."""

    value: Tensor
    w2: Tensor
    bound: Tensor
    shrinkage_x: Tensor
    shrinkage_y: Tensor


class _Batch(NamedTuple):
    """Centred pairs in coordinates that leave distances as they are."""

    x: Tensor  # [items, n, width], or fewer columns: those that follow are zero
    y: Tensor  # [items, n, width]
    dimension: Tensor  # [items], the number of features that they came with
    items: list[int]  # which of all items they are
    grams: tuple[Tensor | None, Tensor | None] = (None, None)  # XᵀX and YᵀY, where they are known


_Result: TypeAlias = tuple[ScoreParts, list[bool]]


def score_groups(
    groups: Sequence[Pair], covariance: CovarianceKind, ridge: Ridge
) -> tuple[ScoreParts, list[str]]:
    """Return numbers and coupling of every item of every group, one after the other."""
    items = sum(len(pair.x.items) for pair in groups)
    device = groups[0].x.values.device if groups else "cpu"
    blank = torch.zeros(items, dtype=torch.float64, device=device)
    numbers, coupling = ScoreParts(blank + 1, blank, blank, blank, blank), ["constant"] * items
    batches = _arrange(_prepare(*piece, covariance) for piece in _pieces(groups))
    for indices, (part, proved) in _results(batches, covariance, ridge):
        at, pairs = torch.tensor(indices, device=device), zip(numbers, part, strict=True)
        numbers = ScoreParts(*(whole.index_copy(0, at, new.to(device)) for whole, new in pairs))
        for index, identity in zip(indices, proved, strict=True):
            coupling[index] = "identity" if identity else "assignment"
    return numbers, coupling


def _prepare(pair: Pair, start: int, covariance: CovarianceKind) -> _Batch:
    """Return the pairs whose output varies, centred; wide ones in the span of their samples."""
    if not pair.is_finite:
        check_finite(pair.x.values, "x")
        check_finite(pair.y.values, "y")
    n, d = pair.x.values.shape[-2:]
    if (False, True) in pair.changes:
        raise InputError(
            "x is constant but y varies: no function of x gives that; "
            "expected y = f(x), so check that both sides come from the same call"
        )
    varying = [index for index, (_, y_varies) in enumerate(pair.changes) if y_varies]
    chosen = slice(None) if len(varying) == len(pair.changes) else varying
    x, y = pair.x.centred[chosen], pair.y.centred[chosen]
    widths = pair.x.widths or [d] * len(pair.changes)
    dimension = torch.tensor([widths[index] for index in varying], device=x.device)
    items = [start + index for index in varying]
    if is_wide(x) or (d == 2 * n and not x.is_cuda):  # block form pays for the decomposition on a CPU
        inside = None
        with_gradients = torch.is_grad_enabled() and (x.requires_grad or y.requires_grad)
        if covariance == "ledoit-wolf" and not with_gradients:
            grams = pair.x.gram[chosen], x @ y.mT, pair.y.gram[chosen]
            inside = coordinates_from_gram(*grams)
        x, y = inside or span_coordinates(torch.cat((x, y), dim=-2))
    elif d < n:
        return _Batch(x, y, dimension, items, (pair.x.gram[chosen], pair.y.gram[chosen]))
    return _Batch(x, y, dimension, items)


def _results(
    batches: Iterable[_Batch], covariance: CovarianceKind, ridge: Ridge
) -> Iterator[tuple[list[int], _Result]]:
    """Yield items and result of each batch; on a GPU, some batches begin before the first is finished."""
    begun: deque[tuple[list[int], Callable[[], _Result]]] = deque()
    for batch in batches:
        begun.append((batch.items, _begin(batch, covariance, ridge)))
        if len(begun) > (_BATCHES_AHEAD if batch.y.is_cuda else 0):
            items, finish = begun.popleft()
            yield items, finish()
    for items, finish in begun:
        yield items, finish()


def _begin(batch: _Batch, covariance: CovarianceKind, ridge: Ridge) -> Callable[[], _Result]:
    """Compute up to the search for a coupling, which runs in threads; the function returned does the rest."""
    x, y = batch.x, batch.y
    of_x, of_y = (
        estimate(torch.zeros_like(rows[:, 0]), rows, covariance, ridge, batch.dimension, gram)
        for rows, gram in zip((x, y), batch.grams, strict=True)
    )
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
        value = (1 - ratio).clamp(min=0)
        return ScoreParts(value, ratio * bound, bound, of_x.shrinkage, of_y.shrinkage), proved

    return finish


def _pieces(groups: Sequence[Pair]) -> Iterator[tuple[Pair, int]]:
    """Yield pairs in pieces that fit in memory, with the first index of each among all items."""
    start = 0
    for pair in groups:
        n, d = pair.x.values.shape[-2:]
        count, size = len(pair.x.items), _chunk_size(pair.x.values, max(d, min(d, 2 * n) * 2))
        for i in range(0, count, size):
            yield pair if size >= count else pair.part(i, i + size), start + i
        start += count


def _arrange(batches: Iterable[_Batch]) -> Iterator[_Batch]:
    """Yield, on a GPU, batches of several widths together, the narrow ones first; else each as it comes.

    Zeros are appended to the narrower pairs: features in which neither side varies. They leave the
    moments, which know the true dimension, and the distances as they are.
    """
    alike: dict[tuple[int, int, str], list[_Batch]] = defaultdict(list)
    for batch in batches:
        if batch.y.is_cuda:
            n, width = batch.y.shape[-2:]
            alike[max(_NARROWEST, 1 << (width - 1).bit_length()), n, str(batch.y.device)].append(batch)
        elif len(batch.items):
            yield batch
    for key in sorted(alike):
        whole = alike[key][0]
        if len(alike[key]) > 1 or whole.x.shape != whole.y.shape:
            whole = _join(alike[key])
        size = _chunk_size(whole.y, 2 * whole.y.shape[-1])
        if 0 < len(whole.items) <= size:
            yield whole
            continue
        for i in range(0, len(whole.items), size):
            piece = slice(i, i + size)
            yield _Batch(whole.x[piece], whole.y[piece], whole.dimension[piece], whole.items[piece])


def _chunk_size(samples: Tensor, width: int) -> int:
    n = samples.shape[-2]
    entries = max(n * n, n * width, width * width // 4)
    return max(1, _CHUNK.get(samples.device.type, _CHUNK["cpu"]) // entries)


def _join(parts: Sequence[_Batch]) -> _Batch:
    width = max(part.y.shape[-1] for part in parts)

    def padded(samples: Sequence[Tensor]) -> Tensor:
        return torch.cat([torch.nn.functional.pad(s, (0, width - s.shape[-1])) for s in samples])

    return _Batch(
        padded([part.x for part in parts]),
        padded([part.y for part in parts]),
        torch.cat([part.dimension for part in parts]),
        [item for part in parts for item in part.items],
    )
