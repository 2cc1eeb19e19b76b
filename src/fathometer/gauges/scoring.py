"""The affinity score of many pairs at a time: checked, centred, batched, Eq. (5) step by step.

A group holds pairs of one shape, `[batch, n, d]` on either side. Groups of different width are solved
together where that pays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fathometer.errors import InputError, NumericalError
from fathometer.transport.assignment import optimal_permutation, paired_cost
from fathometer.transport.gaussian import affine_residual_bound, linear_part
from fathometer.transport.moments import CovarianceKind, Ridge, centre, estimate, is_wide
from fathometer.transport.span import span_coordinates

_TINY = 1e-60
_CHUNK = {"cpu": 2**24, "cuda": 2**28}  # entries of the largest matrix that is held at a time
_NARROWEST = 256  # on a GPU a batch of narrower pairs takes no less time


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
    varying, start = [], 0
    for x, y in groups:
        varying.append(_prepare(x, y, epsilon, start))
        start += len(x)
    for batch in _arrange(varying):
        part, proved = _score(batch, covariance, ridge)
        pairs = zip(numbers, part, strict=True)
        numbers = Numbers(*(whole.index_copy(0, batch.items, new) for whole, new in pairs))
        for item, identity in zip(batch.items.tolist(), proved, strict=True):
            coupling[item] = "identity" if identity else "assignment"
    return numbers, coupling


def _score(batch: _Batch, covariance: CovarianceKind, ridge: Ridge) -> tuple[Numbers, list[bool]]:
    """Eq. (5), step by step."""
    x, y = batch.x, batch.y
    of_x = estimate(torch.zeros_like(x[:, 0]), x, covariance, ridge, batch.dimension)
    of_y = estimate(torch.zeros_like(y[:, 0]), y, covariance, ridge, batch.dimension)
    moved = x @ linear_part(of_x, of_y)
    permutation, proved = optimal_permutation(moved, y)
    w2 = _safe_sqrt(paired_cost(moved, y, permutation))
    bound = affine_residual_bound(of_y)
    value = (1 - w2 / bound).clamp(0, 1)
    if not bool(value.isfinite().all()):
        raise NumericalError(
            f"the score of {len(y)} pairs {list(y.shape[1:])} is not finite; raise the ridge"
        )
    return Numbers(value, w2, bound, of_x.shrinkage, of_y.shrinkage), proved


def _prepare(x: Tensor, y: Tensor, epsilon: float, start: int) -> _Batch:
    """The pairs of a group whose output varies, centred; wide ones in the span of their samples."""
    d = x.shape[-1]
    (_, x), (mean, y) = centre(x), centre(y)
    reach_x, reach_y = _reach(x, "x"), _reach(y, "y")
    varies = (reach_y > 0) & _exceeds_rounding(mean, y, epsilon)
    _check_inputs_vary(varies & (reach_x == 0))
    if not bool(varies.all()):
        x, y = x[varies], y[varies]
    if is_wide(x):
        x, y = span_coordinates(x, y)
    return _Batch(x, y, torch.full((len(x),), d, device=x.device), start + varies.nonzero().flatten())


def _arrange(batches: Sequence[_Batch]) -> Iterator[_Batch]:
    """Batches that fit in memory; on a GPU, of several widths together.

    Zeros are appended to the narrower pairs: features in which neither side varies. They leave the
    moments, which know the true dimension, and the distances as they are.
    """
    together: dict[tuple[int, int, int], list[_Batch]] = defaultdict(list)
    for place, batch in enumerate(b for b in batches if len(b.items)):
        n, width = batch.y.shape[-2:]
        if batch.y.device.type == "cpu":
            together[n, width, place].append(batch)
        else:
            together[n, max(_NARROWEST, 1 << (width - 1).bit_length()), 0].append(batch)
    for (n, _, _), parts in together.items():
        whole = parts[0]
        width = max(b.y.shape[-1] for b in parts)
        if whole.y.device.type != "cpu":
            x, y = _side_by_side([b.x for b in parts], width), _side_by_side([b.y for b in parts], width)
            whole = _Batch(x, y, torch.cat([b.dimension for b in parts]), torch.cat([b.items for b in parts]))
        size = max(1, _CHUNK.get(whole.y.device.type, _CHUNK["cpu"]) // (n * max(n, width)))
        yield from (_Batch(*(part[i : i + size] for part in whole)) for i in range(0, len(whole.items), size))


def _side_by_side(samples: Sequence[Tensor], width: int) -> Tensor:
    return torch.cat([torch.nn.functional.pad(s, (0, width - s.shape[-1])) for s in samples])


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
