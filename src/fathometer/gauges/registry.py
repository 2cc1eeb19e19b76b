"""Find gauges by name, and read them from many pairs: in threads on a CPU, in batches on a GPU."""

from __future__ import annotations

import math
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor

from fathometer.errors import (
    FathometerError,
    InputError,
    NumericalError,
    did_you_mean,
    is_out_of_memory,
)
from fathometer.gauges.affinity import compute_affinities, compute_affinity
from fathometer.gauges.dimensions import (
    compute_cost_of_identity,
    compute_nonnegativity,
    compute_stable_rank,
)
from fathometer.gauges.gauge import (
    Gauge,
    GaugeFunction,
    GaugeValue,
    Prepared,
    Range,
    column_name,
    values_of,
)
from fathometer.gauges.linear_fits import compute_cka, compute_r2, compute_r2_heldout
from fathometer.gauges.statistics import compute_entropy, compute_norm, compute_sparsity
from fathometer.threads import pool_of_single_threads

GaugeChoice: TypeAlias = "str | Gauge | GaugeFunction"
"""A name, a record, or a plain function of X and Y."""

Pairs: TypeAlias = "Mapping[str, tuple[Tensor, Tensor]]"
"""Pairs by the names of their sites."""

_RESERVED = ("site", "batch", "n", "d")  # columns that a table of readings has anyway
_SHARE = (0.0, 1.0)
_NATS = math.log(256)  # of an entropy over 256 bins
_RANK: Range = (0.0, min)


def _gauge(
    name: str,
    compute: Callable[[Prepared], GaugeValue],
    values: Range | Mapping[str, Range] = _SHARE,
    *,
    infinite: bool = False,
    batched: bool = True,
    together: Callable[[Sequence[Prepared]], list[Tensor]] | None = None,
    standard: bool = True,
) -> Gauge:
    return Gauge(
        name, compute, values, infinite, batched, together, frozenset({"equal_widths"}), standard=standard
    )


GAUGES: dict[str, Gauge] = {
    gauge.name: gauge
    for gauge in (
        _gauge("affinity", compute_affinity, together=compute_affinities),
        _gauge(  # not standard: slower than all others together on a CPU, and unstable where d > n
            "affinity_sample",
            partial(compute_affinity, covariance="sample"),
            together=partial(compute_affinities, covariance="sample"),
            standard=False,
        ),
        _gauge("cka", compute_cka),
        _gauge("r2", compute_r2),
        _gauge("r2_heldout", compute_r2_heldout, (-math.inf, 1.0)),
        _gauge("sparsity", compute_sparsity, {"before": _SHARE, "after": _SHARE, "change": (-1.0, 1.0)}),
        _gauge(
            "entropy",
            compute_entropy,
            {"before": (0.0, _NATS), "after": (0.0, _NATS), "change": (-_NATS, _NATS)},
        ),
        _gauge("norm", compute_norm, (0.0, math.inf)),
        _gauge("stable_rank", compute_stable_rank, {"x": _RANK, "y": _RANK}),
        _gauge("cost_of_identity", compute_cost_of_identity, (0.0, math.inf), infinite=True),
        _gauge("nonnegativity", compute_nonnegativity, {"entries": _SHARE, "energy": _SHARE}),
    )
}
"""The gauges of the package by name."""

SETS = {
    "standard": tuple(name for name, gauge in GAUGES.items() if gauge.standard),
    "all": tuple(GAUGES),
}
"""Names that stand for several gauges: all, and all but `affinity_sample`."""

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
        for gauge in _named(choice) if isinstance(choice, str) else [_own(choice)]:
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


def _own(choice: Gauge | GaugeFunction) -> Gauge:
    """Return a record, one made from a function, or that of a function of the package."""
    if not callable(choice):
        raise InputError(
            f"expected names or functions of x and y, got {type(choice).__name__}", parameter="gauges"
        )
    gauge = choice if isinstance(choice, Gauge) else Gauge.from_function(choice)
    home = str(getattr(choice, "__module__", ""))
    if gauge.name in GAUGES and home.startswith("fathometer.gauges."):
        return GAUGES[gauge.name]
    if gauge.name in _RESERVED:
        raise InputError(
            f"{gauge.name!r} is a column of every table; give the function another name", parameter="gauges"
        )
    if gauge.name in GAUGES and not home.startswith("fathometer."):
        raise InputError(
            f"{gauge.name!r} is a gauge of fathometer; give your function another name", parameter="gauges"
        )
    return gauge


def fault_of(column: str, rows: Iterable[tuple[float, float, float]]) -> str | None:
    """Return what cannot be in a column of a sounding, given its values with n and d each, if anything is.

    Columns of other gauges may hold anything. The path along residual blocks has no value missing in the
    columns that it shares with the package's: only in its `speed`.

    Example:
        >>> fault_of("affinity", [(0.5, 40, 6), (1.5, 40, 6)])
        'affinity: expected values from 0 to 1, got 1.5'
        >>> fault_of("stable_rank_x", [(5.5, 40, 6), (5.5, 40, 5)])
        'stable_rank_x: expected values from 0 to 5, got 5.5'
    """
    return _BY_COLUMN[column].fault(column, rows) if column in _BY_COLUMN else None


@torch.no_grad()
def read_gauges(gauges: Mapping[str, Gauge], pairs: Pairs) -> list[dict[str, float]]:
    """Compute the values of all gauges for every pair; errors name the pair and the gauge.

    A gauge with several values gives `sparsity_before`, `sparsity_after` and so on. A pair may have a
    `resolution`, the relative spacing of the numbers that X and Y were computed in; otherwise that of their
    dtypes counts.
    """
    if not _are_on_gpu(pairs):
        return read_one_by_one(gauges, pairs)
    try:
        return read_together(gauges, pairs)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        found = read_one_by_one(gauges, pairs)  # which names the pair, if a single one fails
        warnings.warn(
            f"gauges: a batch of pairs failed ({error!r}), so they were read one by one", stacklevel=2
        )
        return found


def _are_on_gpu(pairs: Pairs) -> bool:
    return any(x.is_cuda for x, _ in pairs.values())


def read_one_by_one(gauges: Mapping[str, Gauge], pairs: Pairs) -> list[dict[str, float]]:
    """Read pairs as `read_gauges` does on a CPU: a thread for each."""
    if len(pairs) < 2:
        return [_read_pair(gauges, *item) for item in pairs.items()]
    with pool_of_single_threads() as pool:  # a pair for each core is faster than all cores for each pair
        return list(pool.map(lambda item: _read_pair(gauges, *item), pairs.items()))


def _read_pair(gauges: Mapping[str, Gauge], name: str, pair: tuple[Tensor, Tensor]) -> dict[str, float]:
    found: dict[str, float] = {}
    prepared = Prepared(*pair, getattr(pair, "resolution", None))
    with torch.no_grad():  # which threads do not inherit
        for gauge in gauges.values():
            try:
                value = _computed(gauge, prepared)
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


def _computed(gauge: Gauge, pair: Prepared) -> GaugeValue:
    """Return the value of a gauge; an error in a user's function says where it is."""
    if "equal_widths" in gauge.needs:
        shapes = [list(side.shape) for side in pair.given]
        if shapes[0] != shapes[1]:
            raise InputError(
                f"expected as many features in y as in x, got {shapes[0]} and {shapes[1]}; "
                "choose gauges of your own that can take such a pair"
            )
    try:
        return gauge.compute(pair)
    except Exception as error:
        if isinstance(error, FathometerError) or is_out_of_memory(error):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}, line {last.lineno}"
        raise FathometerError(f"it raised {error!r} ({place})") from error


@torch.no_grad()
def read_together(gauges: Mapping[str, Gauge], pairs: Pairs) -> list[dict[str, float]]:
    """Read pairs as `read_gauges` does on a GPU: those of one shape in one batch."""
    every = list(pairs.values())
    alike: dict[tuple[object, ...], list[int]] = {}
    for place, (x, y) in enumerate(every):
        kind = (x.shape, x.dtype, y.shape, y.dtype, getattr(every[place], "resolution", None))
        alike.setdefault(kind, []).append(place)
    columns: dict[str, dict[str, Tensor]] = {gauge.name: {} for gauge in gauges.values()}

    def put(gauge: Gauge, places: Sequence[int], value: GaugeValue) -> None:
        for key, entry in values_of(value).items():
            numbers = torch.as_tensor(entry).reshape(-1)
            own, column = columns[gauge.name], column_name(gauge.name, key)
            blank = torch.full((len(every),), torch.nan, dtype=torch.float64, device=numbers.device)
            whole = own.setdefault(column, blank)
            whole[places] = numbers.double().to(whole.device)

    def batch(places: Sequence[int]) -> Prepared:
        x, y = (torch.stack([every[place][side] for place in places]) for side in (0, 1))
        return Prepared(x, y, getattr(every[places[0]], "resolution", None))

    batched = [gauge for gauge in gauges.values() if gauge.batched and gauge.together is None]
    for gauge in gauges.values():
        if gauge.together is not None:
            values = gauge.together([batch(places) for places in alike.values()])
            for places, value in zip(alike.values(), values, strict=True):
                put(gauge, places, value)
        elif not gauge.batched:
            for place, pair in enumerate(every):
                put(gauge, [place], gauge.compute(Prepared(*pair, getattr(pair, "resolution", None))))
    for places in alike.values():
        group = batch(places)  # one at a time: what it keeps for several gauges takes memory
        for gauge in batched:
            put(gauge, places, gauge.compute(group))
    lists = {name: column.tolist() for own in columns.values() for name, column in own.items()}
    return [{name: column[i] for name, column in lists.items()} for i in range(len(pairs))]
