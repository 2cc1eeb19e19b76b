"""The two sides of a pair, with what several gauges need of them, computed once, on first use."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from fathometer.gauges.spectrum import diagonal_of, eigenvalues, gram_of_rows, smaller_gram, without_rounding
from fathometer.transport.arrays import (
    Array,
    as_pair,
    check_spread,
    exceeds_rounding,
    has_squares,
    largest_entry,
    resolution,
)
from fathometer.transport.moments import centre
from fathometer.transport.tridiagonal import raw_gram, spectra

_T = TypeVar("_T")

_NEIGHBOURS = 20
_MAX_PRODUCTS = {"cpu": 2**22, "cuda": 2**26}  # of samples with each other, that are held at a time
_MAX_DISTANCES = {"cpu": 2**19, "cuda": 2**26}  # the same of distances: so few stay in the cache of a CPU
_SAME_POINT = 1e-14  # of the squared norms that a squared distance is the difference of: rounding


class _ComputedOnce(cached_property[_T]):
    """A `cached_property` without the lock that Python 3.11 has for it.

    The lock is that of all objects together: threads that read different pairs would wait for each other.
    """

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        super().__init__(compute)
        self.lock = nullcontext()


class Samples:
    """One side of a pair, or of a batch of pairs.

    Attributes:
        values: `[samples, features]` or `[batch, samples, features]`, float64.
        resolution: the relative spacing of the numbers that they were computed in.
        name: what errors call them, `x` or `y`.
        widths: the number of features of each item, where zeros have been appended to some.
    """

    def __init__(
        self, values: Tensor, resolution: float, name: str, widths: Sequence[int] | None = None
    ) -> None:
        self.values, self.resolution, self.name, self.widths = values, resolution, name, widths
        self.pair: Callable[[], Pair | None] = lambda: None
        self.is_checked = False

    @property
    def items(self) -> Tensor:
        """The values as a batch, `[items, n, d]`, also of a single pair."""
        return self.values.reshape(-1, *self.values.shape[-2:])

    @_ComputedOnce
    def _mean_and_rows(self) -> tuple[Tensor, Tensor]:
        return centre(self.items)

    @property
    def mean(self) -> Tensor:
        """The mean of each feature, `[items, d]`."""
        return self._mean_and_rows[0]

    @property
    def centred(self) -> Tensor:
        """The samples minus their mean, `[items, n, d]`; those whose squares overflow are refused."""
        if not self.is_checked:
            check_spread(self.largest, self.name)
            self.is_checked = True
        return self._mean_and_rows[1]

    @_ComputedOnce
    def largest(self) -> Tensor:
        """The largest entry of the centred samples, `[items]`."""
        return largest_entry(self._mean_and_rows[1])

    @_ComputedOnce
    def varies(self) -> Tensor:
        """Whether any feature of an item varies beyond the rounding of its dtype, `[items]`."""
        return (self.largest > 0) & self.varying.any(-1)

    @_ComputedOnce
    def varying(self) -> Tensor:
        """Whether each feature varies beyond the rounding of its dtype, `[items, d]`."""
        return exceeds_rounding(self.mean, self._mean_and_rows[1], self.resolution)

    @_ComputedOnce
    def norms2(self) -> Tensor:
        """The squared norms of the centred samples, `[items, n]`."""
        return torch.linalg.vector_norm(self.centred, dim=-1).square()

    @_ComputedOnce
    def gram(self) -> Tensor:
        """The smaller Gram matrix of the centred samples R, `[items, k, k]`: RRᵀ if n ≤ d, otherwise RᵀR."""
        return smaller_gram(self.centred)

    @_ComputedOnce
    def spectrum(self) -> Tensor:
        """The k = min(n, d) eigenvalues of the covariance RᵀR / n, `[items, k]`, in falling order."""
        if self.values.is_cuda:
            compute_spectra([self])
            return self.spectrum
        return eigenvalues(self.gram).flip(-1) / self.values.shape[-2]

    @_ComputedOnce
    def raw_gram(self) -> Tensor:
        """The smaller Gram matrix of the samples as they are, `[items, k, k]`."""
        return raw_gram(self.centred, self.mean, self.gram)

    @_ComputedOnce
    def singular_values(self) -> Tensor:
        """The k = min(n, d) singular values of the samples, not centred, `[items, k]`, in falling order.

        They come from a Gram matrix: those below some 1e-7 of the largest count as 0.
        """
        if self.values.is_cuda:
            compute_spectra([self])
            return self.singular_values
        return eigenvalues(self.raw_gram).flip(-1).sqrt()

    @_ComputedOnce
    def nearest(self) -> Tensor:
        """The distances of each sample to its 20 nearest others, `[items, n, 20]`, in rising order.

        With fewer samples, to all others. They come from scalar products: below some 1e-7 of the norms they
        count as 0.
        """
        rows, norms2 = self.centred, self.norms2
        items, n, d = rows.shape
        device = "cuda" if rows.is_cuda else "cpu"
        block_size = max(1, _MAX_DISTANCES[device] // (items * n))
        fits = items * n * n <= _MAX_PRODUCTS[device]
        whole = self.gram if n <= d else gram_of_rows(rows) if fits else None
        found = []
        for block in (slice(start, start + block_size) for start in range(0, n, block_size)):
            products = rows[:, block] @ rows.mT if whole is None else whole[:, block]
            squared = torch.sub(norms2[:, None, :], products, alpha=2).add_(norms2[:, block, None])
            diagonal_of(squared[:, :, block]).fill_(torch.inf)
            nearest, others = squared.topk(min(_NEIGHBOURS, n - 1), largest=False)
            sums = norms2[:, block, None] + norms2[:, None].expand_as(squared).gather(-1, others)
            found.append(torch.where(nearest > _SAME_POINT * sums, nearest, 0.0).sort().values.sqrt())
        return torch.cat(found, dim=1)

    def each(self, values: Tensor) -> Tensor:
        """Return `[items, …]` values as they are for a batch, as those of one pair for a single pair."""
        return values if self.values.ndim == 3 else values[0]


class _Part(Samples):
    """Some items of a larger batch, in which all quantities are computed together."""

    def __init__(self, whole: Samples, items: slice, name: str) -> None:
        super().__init__(whole.values[items], whole.resolution, name, (whole.widths or [])[items] or None)
        self.whole, self._items = whole, items
        self.is_checked = True

    def __getattribute__(self, name: str) -> Any:
        if name in _COMPUTED:
            return getattr(self.whole, name)[self._items]
        return super().__getattribute__(name)


QUANTITIES = ("mean", "centred", "norms2", "gram", "raw_gram", "spectrum", "singular_values", "nearest")
"""What a gauge may ask for of each side: `spectrum_x`, `gram_y`."""

_COMPUTED = frozenset((*QUANTITIES, "largest", "varies", "varying"))


class Pair:
    """Both sides of a pair, or of a batch of pairs.

    Attributes:
        x: the inputs.
        y: the outputs.
        is_finite: whether a search for NaN and inf has found none.
        bounds: the range of the function that y comes from, where it is bounded and known.
    """

    def __init__(
        self,
        x: Samples,
        y: Samples,
        *,
        is_finite: bool = False,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        self.x, self.y, self.is_finite, self.bounds = x, y, is_finite, bounds
        self.both: Samples | None = None  # all of x, then all of y, where they are computed together
        x.pair = y.pair = weakref.ref(self)  # a cycle would keep all that is computed until it is collected
        self._known: dict[Callable[[Pair], Any], Any] = {}

    def once(self, compute: Callable[[Pair], _T]) -> _T:
        """Return `compute(self)`, which is computed only once, whichever gauges ask for it."""
        if compute not in self._known:
            self._known[compute] = compute(self)
        return cast("_T", self._known[compute])

    @property
    def sides(self) -> list[Samples]:
        """Both sides, as one batch where they are computed together."""
        return [self.x, self.y] if self.both is None else [self.both]

    def each_side(self, compute: Callable[[Samples], Tensor]) -> dict[str, Tensor]:
        """Return `compute` of x and of y, by these names."""
        if self.both is None:
            return {"x": self.x.each(compute(self.x)), "y": self.y.each(compute(self.y))}
        of_x, of_y = compute(self.both).chunk(2)
        return {"x": of_x, "y": of_y}

    def part(self, start: int, stop: int) -> Pair:
        """Return some pairs of a batch, for which everything is computed again."""
        sides = (
            Samples(s.items[start:stop], s.resolution, s.name, s.widths and s.widths[start:stop])
            for s in (self.x, self.y)
        )
        return Pair(*sides, is_finite=self.is_finite, bounds=self.bounds)

    @_ComputedOnce
    def cross(self) -> Tensor:
        """The products of the centred features of both sides, XᵀY, `[items, d of x, d of y]`."""
        return self.x.centred.mT @ self.y.centred

    @_ComputedOnce
    def changes(self) -> list[tuple[bool, bool]]:
        """Whether X is not constant, and whether Y varies beyond rounding, of each item."""
        check_together([self])
        return self.changes

    def quantity(self, name: str) -> Tensor:
        """Return a shared quantity by the name that a gauge asks for, `spectrum_x`."""
        of, _, side = name.rpartition("_")
        samples = self.x if side == "x" else self.y
        return samples.each(getattr(samples, of))


def prepare_batch(
    groups: Sequence[tuple[Tensor, Tensor]],
    resolutions: tuple[float, float] | None = None,
    bounds: tuple[float, float] | None = None,
) -> Pair:
    """Prepare batches of pairs `[items, n, d]` as one batch; narrower ones get features of zeros.

    Both sides are computed together, if they have one resolution. NaN and inf are left to `check_together`.
    """
    first = groups[0]
    of_x, of_y = resolutions or (resolution(first[0]), resolution(first[1]))
    for x, y in groups:
        if x.shape[:-1] != y.shape[:-1] or x.shape[1] < 2:
            as_pair(x, y, unequal=True)  # which says what is wrong
    widths = [[group[side].shape[-1] for group in groups for _ in group[side]] for side in (0, 1)]
    sides = [
        torch.cat(
            [torch.nn.functional.pad(g[side], (0, max(widths[side]) - g[side].shape[-1])) for g in groups]
        )
        for side in (0, 1)
    ]
    if of_x != of_y or sides[0].dtype != sides[1].dtype or widths[0] != widths[1]:
        x, y = (side.double() for side in sides)
        return Pair(Samples(x, of_x, "x", widths[0]), Samples(y, of_y, "y", widths[1]), bounds=bounds)
    whole = Samples(torch.cat(sides).double(), of_x, "x or y", widths[0] * 2)
    count = len(widths[0])
    pair = Pair(_Part(whole, slice(0, count), "x"), _Part(whole, slice(count, None), "y"), bounds=bounds)
    pair.both = whole
    return pair


def compute_spectra(sides: Sequence[Samples]) -> None:
    """Compute `spectrum` and `singular_values` of all sides together, which is far faster on a GPU."""
    found = spectra([(side.centred, side.mean, side.gram) for side in sides])
    for side, (of_centred, of_raw) in zip(sides, found, strict=True):
        side.spectrum = without_rounding(of_centred).flip(-1) / side.values.shape[-2]
        side.singular_values = without_rounding(of_raw).flip(-1).sqrt()


def check_together(pairs: Sequence[Pair]) -> None:
    """Refuse samples that are not finite or whose squares overflow, and find the `changes` of all pairs.

    A GPU is waited for once, however many pairs there are.
    """
    sides = [side for pair in pairs for side in pair.sides]
    flags = [
        torch.stack(
            (has_squares(p.x.largest) & has_squares(p.y.largest), p.x.largest > 0, p.y.varies), dim=-1
        )
        for p in pairs
    ]
    every: list[list[bool]] = torch.cat([flag.to(flags[0].device) for flag in flags]).tolist()
    if not all(fine for fine, *_ in every):
        for side in sides:
            check_spread(side.largest, side.name)
    for side in sides:
        side.is_checked = True
    rows = iter(every)
    for pair, flag in zip(pairs, flags, strict=True):
        pair.is_finite = True  # otherwise the largest would be NaN
        pair.changes = [(x, y) for _, x, y in islice(rows, len(flag))]


def prepare(
    x: Array | Samples,
    y: Array | Samples,
    resolutions: tuple[float, float] | None = None,
    bounds: tuple[float, float] | None = None,
    *,
    finite: bool = True,
    unequal: bool = False,
) -> Pair:
    """Convert and check both sides of a pair; one that is prepared already is returned as it is.

    `finite=False` leaves the search for NaN and inf to the caller; `unequal=True` allows x and y of different
    widths.
    """
    if isinstance(x, Samples) and (known := x.pair()) is not None:
        return known
    x, y = cast("Array", x), cast("Array", y)
    a, b = as_pair(x, y, finite=finite, unequal=unequal)
    of_x, of_y = resolutions or (resolution(x), resolution(y))
    return Pair(Samples(a, of_x, "x"), Samples(b, of_y, "y"), is_finite=finite, bounds=bounds)
