"""Find gauges by name, and read them from many pairs: in threads on a CPU, in batches on a GPU."""

from __future__ import annotations

import math
import traceback
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from fathometer.errors import (
    FathometerError,
    InputError,
    NumericalError,
    did_you_mean,
    is_out_of_memory,
)
from fathometer.gauges.affinity import affinity, affinity_of_batches
from fathometer.gauges.collapse import neural_collapse
from fathometer.gauges.dimensions import cost_of_identity, nonnegativity, stable_rank
from fathometer.gauges.gauge import (
    LABELS,
    Gauge,
    GaugeFunction,
    GaugeValue,
    Range,
    column_name,
    indices_of_equal,
    values_of,
)
from fathometer.gauges.geometry import anisotropy, dead, saturated
from fathometer.gauges.linear_fits import cka, cka_debiased, r2, r2_heldout
from fathometer.gauges.neighbours import intrinsic_dimension
from fathometer.gauges.ranks import alpha, effective_rank, max_rankme, participation_ratio, rankme
from fathometer.gauges.samples import Pair, check_together, compute_spectra, prepare, prepare_batch
from fathometer.gauges.statistics import entropy, norm, sparsity
from fathometer.threads import pool_of_single_threads

GaugeChoice: TypeAlias = "str | Gauge | GaugeFunction"
"""A name, a record, or a plain function of X and Y."""

Pairs: TypeAlias = "Mapping[str, tuple[Tensor, Tensor]]"
"""Pairs by the names of their sites."""

_Facts: TypeAlias = "tuple[float, float] | None"

_RESERVED = ("site", "batch", "n", "d")  # columns that a table of readings has anyway
_SHARE = (0.0, 1.0)
_NATS = (0.0, math.log(256))  # an entropy over 256 bins
_RANK: Range = (0.0, min)
_POSITIVE = (0.0, math.inf)
_MIN_SIZE_TO_SPLIT = 512  # of n and d: the work on one smaller pair is done before threads have started
_MAX_ENTRIES = 2**27  # of the pairs that a GPU reads together: 2 GB in float64, and as much centred


_gauge = partial(Gauge, batched=True, takes_samples=True)
_joined = partial(_gauge, joins_widths=True)


def _both(*quantities: str) -> tuple[str, ...]:
    return tuple(f"{quantity}_{side}" for quantity in quantities for side in "xy")


def _of_sides(bounds: Range, *prefixes: str) -> dict[str, Range]:
    return {f"{prefix}{side}": bounds for prefix in prefixes or ("",) for side in "xy"}


GAUGES: dict[str, Gauge] = {
    gauge.name: gauge
    for gauge in (
        _gauge("affinity", affinity, _SHARE, compute_many=affinity_of_batches),
        _gauge(
            "affinity_sample",
            partial(affinity, covariance="sample"),
            _SHARE,
            compute_many=partial(affinity_of_batches, covariance="sample"),
        ),
        _joined("cka", cka, _SHARE),
        _joined("cka_debiased", cka_debiased, (-1.0, 1.0), missing=True, needs=_both("gram", "norms2")),
        _joined("r2", r2, _SHARE),
        _joined("r2_heldout", r2_heldout, (-math.inf, 1.0)),
        _gauge("sparsity", sparsity, {"before": _SHARE, "after": _SHARE, "change": (-1.0, 1.0)}),
        _gauge("entropy", entropy, {"before": _NATS, "after": _NATS, "change": (-_NATS[1], _NATS[1])}),
        _joined("norm", norm, (0.0, math.inf)),
        _joined("stable_rank", stable_rank, _of_sides(_RANK), needs=_both("singular_values")),
        _joined(
            "cost_of_identity",
            cost_of_identity,
            (0.0, math.inf),
            infinite=True,
            needs=("singular_values_y",),
        ),
        _gauge("nonnegativity", nonnegativity, {"entries": _SHARE, "energy": _SHARE}),
        _joined("effective_rank", effective_rank, _of_sides(_RANK), needs=_both("spectrum")),
        _joined("participation_ratio", participation_ratio, _of_sides(_RANK), needs=_both("gram", "norms2")),
        _joined("rankme", rankme, _of_sides((0.0, max_rankme)), needs=_both("singular_values")),
        _joined("alpha", alpha, _of_sides(_POSITIVE), missing=True, needs=_both("spectrum")),
        _joined(
            "intrinsic_dimension",
            intrinsic_dimension,
            _of_sides(_POSITIVE, "twonn_", "mle_"),
            missing=True,
            needs=_both("nearest"),
        ),
        _joined("anisotropy", anisotropy, _of_sides((lambda n, _: -1 / (n - 1), 1.0))),
        _joined("dead", dead, _of_sides(_SHARE)),
        _gauge("saturated", saturated, _SHARE, missing=True),
        _joined(
            "neural_collapse",
            neural_collapse,
            {"nc1": _POSITIVE, "nc2_norms": _POSITIVE, "nc2_angles": (0.0, 2.0)},
            missing=True,
            needs=(LABELS,),
        ),
    )
}
"""The gauges of the package by name."""

SETS = {
    # Without one that is slower than all others together on a CPU, and unstable where d > n, and without CKA
    # with its bias, which is in the paper.
    "standard": tuple(name for name in GAUGES if name not in ("affinity_sample", "cka")),
    "all": tuple(GAUGES),
}
"""Names that stand for several gauges."""

_BY_COLUMN = {column: gauge for gauge in GAUGES.values() for column in gauge.ranges}


def choose_gauges(gauges: GaugeChoice | Iterable[GaugeChoice] = "standard") -> dict[str, Gauge]:
    """Return gauges by name: names, functions of your own, `standard` and `all`, in a list or with commas.

    Example:
        >>> def gap(x, y):
        ...     return (x - y).abs().max()
        >>> list(choose_gauges(["affinity", gap]))
        ['affinity', 'gap']
        >>> "gap" in choose_gauges(["standard", gap])
        True
    """
    chosen: dict[str, Gauge] = {}
    for choice in [gauges] if isinstance(gauges, str) or callable(gauges) else gauges:
        for gauge in _named(choice) if isinstance(choice, str) else [_as_gauge(choice)]:
            if chosen.get(gauge.name, gauge) is not gauge:
                raise InputError(
                    f"two are called {gauge.name!r}; give one of the functions another name",
                    parameter="gauges",
                )
            chosen[gauge.name] = gauge
    if not chosen:
        raise InputError("expected at least one, got none", parameter="gauges")
    return chosen


def _named(names: str) -> list[Gauge]:
    """Return the gauges that a text names."""
    found = []
    for name in map(str.strip, names.split(",")):
        several = SETS.get(name, (name,))
        if several[0] not in GAUGES:
            known = (*SETS, *GAUGES)
            hint = did_you_mean(name, known) or f"expected {', '.join(known)}, or a function"
            raise InputError(f"unknown gauge {name!r}; {hint}", parameter="gauges")
        found += [GAUGES[each] for each in several]
    return found


def _as_gauge(choice: Gauge | GaugeFunction) -> Gauge:
    """Return a record, one made from a function, or that of a function of the package."""
    if not callable(choice):
        raise InputError(
            f"expected names or functions of x and y, got {type(choice).__name__}", parameter="gauges"
        )
    for known in GAUGES.values():
        if choice is known or getattr(choice, "function", choice) is known.function:
            return known
    gauge = choice if isinstance(choice, Gauge) else Gauge.from_function(choice)
    function = gauge.function.func if isinstance(gauge.function, partial) else gauge.function
    home = str(getattr(function, "__module__", ""))
    for name in (gauge.name, *gauge.ranges):
        if name in _RESERVED:
            raise InputError(
                f"{name!r} is a column of every table; give the function another name", parameter="gauges"
            )
        if (name in GAUGES or name in _BY_COLUMN) and not home.startswith("fathometer."):
            kind = "gauge" if name in GAUGES else "column"
            raise InputError(
                f"{name!r} is a {kind} of fathometer; give your function another name", parameter="gauges"
            )
    return gauge


def out_of_range(column: str, rows: Iterable[tuple[float, float, float]]) -> str | None:
    """Describe the first value outside the range of its column; None if all are inside.

    A row is (value, n, d). Columns of other gauges may hold anything. The path along residual blocks has no
    value missing in the columns that it shares with the package's: only in its `speed`.

    Example:
        >>> out_of_range("affinity", [(0.5, 40, 6), (1.5, 40, 6)])
        'affinity: expected values from 0 to 1, got 1.5'
        >>> out_of_range("stable_rank_x", [(5.5, 40, 6), (5.5, 40, 5)])
        'stable_rank_x: expected values from 0 to 5, got 5.5'
    """
    return _BY_COLUMN[column].out_of_range(column, rows) if column in _BY_COLUMN else None


@torch.no_grad()
def read_gauges(
    gauges: Mapping[str, Gauge], pairs: Pairs, labels: Tensor | None = None
) -> list[dict[str, float]]:
    """Compute the values of all gauges for every pair; errors name the pair and the gauge.

    A gauge with several values gives `sparsity_before`, `sparsity_after` and so on. A pair may have a
    `resolution`, the relative spacing of the numbers that X and Y were computed in; otherwise that of their
    dtypes counts. It may have `bounds`, the range of the function between them. `labels` has a whole number
    for each sample. Gauges that need labels are read only where there are some: of pairs with one row for
    each of them.
    """
    if not _are_on_gpu(pairs):
        return read_one_by_one(gauges, pairs, labels)
    try:
        return read_together(gauges, pairs, labels)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        found = read_one_by_one(gauges, pairs, labels)  # which names the pair, if a single one fails
        warnings.warn(
            f"gauges: a batch of pairs failed ({error!r}), so they were read one by one", stacklevel=2
        )
        return found


def _facts_of(pair: tuple[Tensor, Tensor]) -> tuple[_Facts, _Facts]:
    """Return what a captured pair knows of itself: its resolution, and the range of its function."""
    return getattr(pair, "resolution", None), getattr(pair, "bounds", None)


def _are_on_gpu(pairs: Pairs) -> bool:
    return any(x.is_cuda for x, _ in pairs.values())


def read_one_by_one(
    gauges: Mapping[str, Gauge], pairs: Pairs, labels: Tensor | None = None
) -> list[dict[str, float]]:
    """Read pairs as `read_gauges` does on a CPU: a thread for each."""
    read = partial(_read_pair, gauges, labels)
    if len(pairs) < 2:
        return [read(name, pair, alone=True) for name, pair in pairs.items()]
    with pool_of_single_threads() as pool:  # a pair for each core is faster than all cores for each pair
        return list(pool.map(read, pairs, pairs.values()))


def _read_pair(
    gauges: Mapping[str, Gauge],
    labels: Tensor | None,
    name: str,
    pair: tuple[Tensor, Tensor],
    *,
    alone: bool = False,
) -> dict[str, float]:
    found: dict[str, float] = {}
    prepared = cache(partial(prepare, *pair, *_facts_of(pair)))
    with torch.no_grad():  # which threads do not inherit
        early: dict[str, GaugeValue] = {}
        if alone and min(pair[0].shape) >= _MIN_SIZE_TO_SPLIT:
            with suppress(FathometerError):  # it comes again, from its gauge
                early = _compute_side_by_side(gauges.values(), *pair, prepared)
        for gauge in _readable(gauges, len(pair[0]), labels):
            try:
                value = early[gauge.name] if gauge.name in early else _compute(gauge, *pair, prepared, labels)
                numbers = values_of(value).items()
                found |= {column_name(gauge.name, key): float(number) for key, number in numbers}
            except (InputError, NumericalError) as error:
                raise type(error)(f"{name}: {gauge.name}: {error}") from error
            except FathometerError as error:
                raise FathometerError(f"{name}: {gauge.name}: {error}") from error
            except Exception as error:  # the user's code
                if is_out_of_memory(error):
                    raise
                raise FathometerError(
                    f"{name}: {gauge.name}: expected a number, or a dict of them, got {error!r}"
                ) from error
    return found


def _compute_side_by_side(
    gauges: Iterable[Gauge], x: Tensor, y: Tensor, prepared: Callable[[], Pair]
) -> dict[str, GaugeValue]:
    """Compute what gains little from several threads in a thread each: quantities of x and y, and scores.

    The quantities are kept in the pair. The scores are returned by the names of their gauges.
    """
    pair = prepared()
    _ = pair.x.gram, pair.y.gram  # which all of them read
    needs = sorted({need for gauge in gauges for need in gauge.needs if need != LABELS})
    with pool_of_single_threads() as pool:
        scores = {
            gauge.name: pool.submit(gauge.read, x, y, prepared, None)
            for gauge in gauges
            if gauge.compute_many
        }
        for side in ("_x", "_y"):
            pool.submit(lambda names: [*map(pair.quantity, names)], [n for n in needs if n.endswith(side)])
        return {name: score.result() for name, score in scores.items()}


def _readable(gauges: Mapping[str, Gauge], n: int, labels: Tensor | None) -> list[Gauge]:
    """Return the gauges that can be read: those that need labels, only if each sample has one."""
    labelled = labels is not None and len(labels) == n
    return [gauge for gauge in gauges.values() if labelled or LABELS not in gauge.needs]


def _compute(
    gauge: Gauge, x: Tensor, y: Tensor, prepared: Callable[[], Pair], labels: Tensor | None
) -> GaugeValue:
    """Return the value of a gauge; an error in a user's function says where it is."""
    try:
        return gauge.read(x, y, prepared, labels)
    except Exception as error:
        if isinstance(error, FathometerError) or is_out_of_memory(error):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}, line {last.lineno}"
        raise FathometerError(f"it raised {error!r} ({place})") from error


@torch.no_grad()
def read_together(
    gauges: Mapping[str, Gauge], pairs: Pairs, labels: Tensor | None = None
) -> list[dict[str, float]]:
    """Read pairs as `read_gauges` does on a GPU: those of one shape in one batch."""
    every = list(pairs.values())
    facts = [_facts_of(pair) for pair in every]
    resolutions = [known for known, _ in facts]
    alike = indices_of_equal(
        (x.shape, x.dtype, y.shape, y.dtype, known) for (x, y), known in zip(every, facts, strict=True)
    )
    found: list[tuple[str, Sequence[int], Tensor]] = []

    def put(gauge: Gauge, indices: Sequence[int], value: GaugeValue) -> None:
        for key, entry in values_of(value).items():
            found.append((column_name(gauge.name, key), indices, torch.as_tensor(entry).reshape(-1)))

    single = [cache(partial(prepare, *pair, *known)) for pair, known in zip(every, facts, strict=True)]
    for groups in _within_memory(alike, every):
        batches = []
        for indices in groups:
            x, y = (torch.stack([every[index][side] for index in indices]) for side in (0, 1))
            prepared = cache(partial(prepare_batch, [(x, y)], *facts[indices[0]]))
            batches.append(_Batch(indices, x, y, prepared))
        narrow = _join([batch for batch in batches if batch.is_narrow], resolutions)
        wide = [batch for batch in batches if not batch.is_narrow]
        joined = [*narrow, *_join(wide, resolutions)]
        if any(gauge.takes_samples for gauge in gauges.values()):
            check_together([batch.prepared() for batch in (*narrow, *wide)])
        if any(need.startswith(("spectrum", "singular")) for g in gauges.values() for need in g.needs):
            compute_spectra([side for batch in joined for side in batch.prepared().sides])
        for gauge in gauges.values():
            if gauge.compute_many is not None:
                values = gauge.compute_many([batch.prepared() for batch in (*narrow, *wide)])
                for batch, value in zip((*narrow, *wide), values, strict=True):
                    put(gauge, batch.indices, value)
                continue
            for batch in joined if gauge.joins_widths else batches:
                if gauge not in _readable(gauges, batch.x.shape[1], labels):
                    continue
                if gauge.batched:
                    put(gauge, batch.indices, gauge.read(batch.x, batch.y, batch.prepared, labels))
                    continue
                for index in batch.indices:
                    put(gauge, [index], gauge.read(*every[index], single[index], labels))
    return _rows(found, len(every))


class _Batch(NamedTuple):
    """Pairs that a GPU reads in one batch."""

    indices: Sequence[int]  # among all pairs
    x: Tensor
    y: Tensor
    prepared: Callable[[], Pair]

    @property
    def is_narrow(self) -> bool:
        """Whether features are so few that all gauges work with those, not with samples."""
        n, d = self.y.shape[-2:]
        return 4 * d <= 3 * n


def _join(batches: Sequence[_Batch], resolutions: Sequence[tuple[float, float] | None]) -> list[_Batch]:
    """Return batches of several widths, narrower pairs padded with zeros: a gauge then costs fewer kernels.

    Together are widths within a factor of 4, unless they are a little below n, where gauges differ.
    """
    groups: list[list[_Batch]] = []
    for batch in sorted(batches, key=lambda batch: -batch.y.shape[-1]):
        n, d = batch.y.shape[-2:]
        first = groups[-1][0] if groups else None
        if (
            first is not None
            and (batch.is_narrow or d >= n)
            and first.y.shape[-1] <= 4 * d
            and _kind(first, resolutions) == _kind(batch, resolutions)
        ):
            groups[-1].append(batch)
        else:
            groups.append([batch])
    joined = []
    for group in groups:
        indices = [index for batch in group for index in batch.indices]
        pairs = [(batch.x, batch.y) for batch in group]
        prepared = cache(partial(prepare_batch, pairs, resolutions[indices[0]]))
        joined.append(group[0] if len(group) == 1 else _Batch(indices, group[0].x, group[0].y, prepared))
    return joined


def _kind(batch: _Batch, resolutions: Sequence[tuple[float, float] | None]) -> Hashable:
    """Return what pairs that are read together have in common."""
    equal = batch.x.shape == batch.y.shape
    return (
        batch.y.shape[-2],
        equal,
        batch.x.dtype,
        batch.y.dtype,
        batch.y.device,
        resolutions[batch.indices[0]],
    )


def _rows(found: Sequence[tuple[str, Sequence[int], Tensor]], count: int) -> list[dict[str, float]]:
    """Return the values of each pair by column; they are copied from the GPU together."""
    devices = [values.device for *_, values in found]
    device = next((device for device in devices if device.type != "cpu"), devices[0] if devices else None)
    numbers = iter(torch.cat([values.double().to(device) for *_, values in found]).tolist() if found else ())
    columns = dict.fromkeys(column for column, *_ in found)
    rows: list[dict[str, float]] = [dict.fromkeys(columns, math.nan) for _ in range(count)]
    for column, indices, _ in found:
        for index in indices:
            rows[index][column] = next(numbers)
    return rows


def _within_memory(
    groups: Iterable[list[int]], pairs: Sequence[tuple[Tensor, Tensor]]
) -> Iterator[list[list[int]]]:
    """Yield groups of pairs that are read together: as many as fit into memory with what they share."""
    chosen: list[list[int]] = []
    entries = 0
    for indices in groups:
        own = sum(pairs[index][1].numel() for index in indices)
        if chosen and entries + own > _MAX_ENTRIES:
            yield chosen
            chosen, entries = [], 0
        chosen.append(indices)
        entries += own
    yield chosen
