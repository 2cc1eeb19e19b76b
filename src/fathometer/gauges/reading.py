"""Read gauges from many pairs: in threads on a CPU, in batches on a GPU."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import torch
from torch import Tensor

from fathometer.errors import FathometerError, InputError, NumericalError, is_out_of_memory
from fathometer.gauges.gauge import LABELS, Gauge, GaugeValue, column_name, values_of
from fathometer.gauges.samples import Pair, prepare
from fathometer.gauges.together import Pairs, read_together, readable, resolution_and_bounds
from fathometer.threads import Pool, check_abandoned, pool_of_single_threads

_MIN_SIZE_TO_SPLIT = 512  # of n and d: the work on one smaller pair is done before threads have started


@torch.no_grad()
def read_gauges(
    gauges: Mapping[str, Gauge],
    pairs: Pairs,
    labels: Tensor | None = None,
    on_pair: Callable[[], object] = lambda: None,
) -> list[dict[str, float]]:
    """Compute the values of all gauges for every pair; errors name the pair and the gauge.

    A gauge with several values gives `sparsity_before`, `sparsity_after` and so on. A pair may have a
    `resolution`, the relative spacing of the numbers that X and Y were computed in; otherwise that of their
    dtypes counts. It may have `bounds`, the range of the function between them. `labels` has a whole number
    for each sample. Gauges that need labels are read only where there are some: of pairs with one row for
    each of them. On a CPU, `on_pair` is called after each pair.
    """
    if not _are_on_gpu(pairs):
        return read_one_by_one(gauges, pairs, labels, on_pair)
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


def _are_on_gpu(pairs: Pairs) -> bool:
    return any(x.is_cuda for x, _ in pairs.values())


def read_one_by_one(
    gauges: Mapping[str, Gauge],
    pairs: Pairs,
    labels: Tensor | None = None,
    on_pair: Callable[[], object] = lambda: None,
) -> list[dict[str, float]]:
    """Read pairs as `read_gauges` does on a CPU: a thread for each.

    A single pair has a thread, too, so that Ctrl-C need not wait for the end of a long computation.
    """
    alone = len(pairs) == 1  # a pair for each core is faster than all cores for each pair
    with Pool(1) if alone else pool_of_single_threads() as pool:
        found = []
        for values in pool.map(partial(_read_pair, gauges, labels, alone=alone), pairs, pairs.values()):
            found.append(values)
            on_pair()
    return found


def _read_pair(
    gauges: Mapping[str, Gauge],
    labels: Tensor | None,
    name: str,
    pair: tuple[Tensor, Tensor],
    *,
    alone: bool,
) -> dict[str, float]:
    found: dict[str, float] = {}
    chosen = readable(gauges, *pair, labels)
    prepared = cache(partial(prepare, *pair, *resolution_and_bounds(pair), unequal=True))
    with torch.no_grad():  # which threads do not inherit
        early: dict[str, GaugeValue] = {}
        if alone and min(pair[0].shape) >= _MIN_SIZE_TO_SPLIT:
            with suppress(FathometerError):  # it comes again, from its gauge
                early = _compute_side_by_side(chosen, *pair, prepared)
        for gauge in chosen:
            check_abandoned()
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
    """Compute in a thread each what gains little from several: slow gauges, and quantities of x and y.

    The quantities are kept in the pair. The values of the gauges are returned by name.
    """
    pair = prepared()
    _ = pair.x.gram, pair.y.gram  # which all of them read
    needs = sorted({need for gauge in gauges for need in gauge.needs if need != LABELS})
    with pool_of_single_threads() as pool:
        found = {gauge.name: pool.submit(gauge.read, x, y, prepared, None) for gauge in gauges if gauge.slow}
        for side in ("_x", "_y"):
            pool.submit(lambda names: [*map(pair.quantity, names)], [n for n in needs if n.endswith(side)])
        return {name: value.result() for name, value in found.items()}


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
