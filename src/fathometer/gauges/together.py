"""Read gauges from many pairs on a GPU, in few batches: there, the number of kernels counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.gauges.gauge import LABELS, Gauge, GaugeValue, column_name, indices_of_equal, values_of
from fathometer.gauges.samples import Pair, check_together, compute_spectra, prepare, prepare_batch

Pairs: TypeAlias = "Mapping[str, tuple[Tensor, Tensor]]"
"""Pairs by the names of their sites."""

_MAX_ENTRIES = 2**28  # of the pairs that are read together: 2 GB in float64, and as much centred


@torch.no_grad()
def read_together(
    gauges: Mapping[str, Gauge], pairs: Pairs, labels: Tensor | None = None
) -> list[dict[str, float]]:
    """Read pairs as `read_gauges` does on a GPU: those of one shape in one batch."""
    every = list(pairs.values())
    facts = [resolution_and_bounds(pair) for pair in every]
    resolutions = [known for known, _ in facts]
    alike = indices_of_equal(
        (x.shape, x.dtype, x.device, y.shape, y.dtype, known)
        for (x, y), known in zip(every, facts, strict=True)
    )
    found: list[tuple[str, Sequence[int], Tensor]] = []

    def put(gauge: Gauge, indices: Sequence[int], value: GaugeValue) -> None:
        for key, entry in values_of(value).items():
            values = torch.as_tensor(entry).reshape(-1)
            if len(values) != len(indices):
                raise InputError(f"{gauge.name}: expected {len(indices)} values, got {len(values)}")
            found.append((column_name(gauge.name, key), indices, values))

    single = [
        cache(partial(prepare, *pair, *known, unequal=True)) for pair, known in zip(every, facts, strict=True)
    ]
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
            sides = [side for batch in joined for side in batch.prepared().sides]
            for on_one_device in indices_of_equal(side.values.device for side in sides):
                compute_spectra([sides[index] for index in on_one_device])
        for gauge in gauges.values():
            if gauge.compute_many is not None:
                equal = [batch for batch in (*narrow, *wide) if batch.x.shape == batch.y.shape]
                values = gauge.compute_many([batch.prepared() for batch in equal])
                for batch, value in zip(equal, values, strict=True):
                    put(gauge, batch.indices, value)
                continue
            for batch in joined if gauge.joins_widths and gauge.takes_samples else batches:
                if gauge not in readable(gauges, batch.x, batch.y, labels):
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
        return d < n - 1


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
    """Yield groups of pairs that are read together: as many as fit into memory with what they share.

    The pairs of a group have one shape. A group that is too large is split.
    """
    chosen: list[list[int]] = []
    entries = 0
    for indices in groups:
        of_pair = sum(side.numel() for side in pairs[indices[0]])
        size = max(1, _MAX_ENTRIES // of_pair)
        for run in (indices[start : start + size] for start in range(0, len(indices), size)):
            own = of_pair * len(run)
            if chosen and entries + own > _MAX_ENTRIES:
                yield chosen
                chosen, entries = [], 0
            chosen.append(run)
            entries += own
    yield chosen


def resolution_and_bounds(pair: tuple[Tensor, Tensor]) -> tuple[tuple[float, float] | None, ...]:
    """Return what a captured pair knows of itself: its resolution, and the range of its function."""
    return getattr(pair, "resolution", None), getattr(pair, "bounds", None)


def readable(gauges: Mapping[str, Gauge], x: Tensor, y: Tensor, labels: Tensor | None) -> list[Gauge]:
    """Return the gauges that can be read: those of labels and of unequal widths only where there are some."""
    labelled = labels is not None and len(labels) == x.shape[-2]
    equal = x.shape[-1] == y.shape[-1]
    return [
        gauge
        for gauge in gauges.values()
        if (labelled or LABELS not in gauge.needs) and (equal or gauge.unequal)
    ]
