"""Gauges by name, and many pairs at once: in threads on a CPU, in batches on a GPU."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor

from fathometer.errors import FathometerError, InputError, NumericalError
from fathometer.gauges.affinity import affinity_score, affinity_scores
from fathometer.gauges.companions import cka, entropy, norm, r2, r2_heldout, sparsity
from fathometer.gauges.dimension import cost_of_identity, nonnegativity, stable_rank

Pairs: TypeAlias = "Sequence[tuple[Tensor, Tensor]]"
GaugeValue: TypeAlias = "float | Tensor | Mapping[str, float | Tensor]"
Gauge: TypeAlias = "Callable[[Tensor, Tensor], GaugeValue]"
"""A function of X and Y, `[samples, features]` each, that gives a number, or several with a name each."""

_FOLDS = 5
_RESERVED = ("site", "batch", "n", "d")  # columns that a table of readings has anyway


def _affinity(x: Tensor, y: Tensor) -> float:
    """ρ, Eq. (5), with Ledoit-Wolf covariances."""
    return float(affinity_score(x, y))


def _affinity_sample(x: Tensor, y: Tensor) -> float:
    """ρ, Eq. (5), with sample covariances."""
    return float(affinity_score(x, y, covariance="sample"))


def _affinity_of_many(pairs: Pairs) -> Tensor:
    return torch.from_numpy(affinity_scores(pairs).value)


def _affinity_sample_of_many(pairs: Pairs) -> Tensor:
    return torch.from_numpy(affinity_scores(pairs, covariance="sample").value)


def _r2_heldout(x: Tensor, y: Tensor) -> Tensor:
    return r2_heldout(x, y, folds=min(_FOLDS, x.shape[-2]))


GAUGES: dict[str, Gauge] = {
    "affinity": _affinity,
    "affinity_sample": _affinity_sample,
    "cka": cka,
    "r2": r2,
    "r2_heldout": _r2_heldout,
    "sparsity": sparsity,
    "entropy": entropy,
    "norm": norm,
    "stable_rank": stable_rank,
    "cost_of_identity": cost_of_identity,
    "nonnegativity": nonnegativity,
}
"""The gauges that have a name. All but the first two also take batches `[batch, samples, features]`."""

STANDARD = tuple(name for name in GAUGES if name != "affinity_sample")
"""All but the one that takes longer than all others together on a CPU, and is unstable where d > n."""

_OF_MANY: tuple[tuple[Gauge, Callable[[Pairs], Tensor]], ...] = (
    (_affinity, _affinity_of_many),
    (_affinity_sample, _affinity_sample_of_many),
)


def choose_gauges(gauges: str | Gauge | Iterable[str | Gauge] = "standard") -> dict[str, Gauge]:
    """Gauges under their names: `standard`, `all`, names with commas, functions of one's own, or a list.

    Example:
        >>> def gap(x, y):
        ...     return (x - y).abs().max()
        >>> list(choose_gauges(["affinity", gap]))
        ['affinity', 'gap']
    """
    if isinstance(gauges, str):
        sets = {"all": tuple(GAUGES), "standard": STANDARD}
        gauges = sets[gauges] if gauges in sets else [name.strip() for name in gauges.split(",")]
    elif callable(gauges):
        gauges = [gauges]
    chosen: dict[str, Gauge] = {}
    for gauge in gauges:
        if isinstance(gauge, str) and gauge not in GAUGES:
            near = get_close_matches(gauge, GAUGES, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            known = ", ".join(GAUGES)
            raise InputError(
                f"gauges: expected standard, all, some of {known}, or a function; got {gauge!r}{hint}"
            )
        if not isinstance(gauge, str) and not callable(gauge):
            raise InputError(f"gauges: expected names or functions of x and y, got {type(gauge).__name__}")
        name = gauge if isinstance(gauge, str) else getattr(gauge, "__name__", type(gauge).__name__)
        if name in _RESERVED:
            raise InputError(f"gauges: {name!r} has a meaning of its own; give the function another name")
        if callable(gauge) and name in GAUGES and not str(gauge.__module__).startswith("fathometer."):
            raise InputError(f"gauges: {name!r} is one of ours; give your function another name")
        if name in chosen:
            raise InputError(f"gauges: two are called {name!r}; give one of the functions another name")
        chosen[name] = GAUGES[gauge] if isinstance(gauge, str) else gauge
    if not chosen:
        raise InputError("gauges: expected at least one, got none")
    return chosen


@torch.no_grad()
def read_gauges(
    gauges: Mapping[str, Gauge], pairs: Mapping[str, tuple[Tensor, Tensor]]
) -> list[dict[str, float]]:
    """The values of all gauges for every pair; errors say which pair, by its name, and which gauge.

    A gauge with several values gives `sparsity_before`, `sparsity_after` and so on.
    """
    if not _are_on_gpu(pairs.values()):
        return read_one_by_one(gauges, pairs)
    try:
        return read_together(gauges, pairs)
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        found = read_one_by_one(gauges, pairs)  # where the culprit, if it is one pair, is named
        warnings.warn(
            f"gauges: a batch of pairs failed ({error!r}), so they were read one by one", stacklevel=2
        )
        return found


def _are_on_gpu(pairs: Iterable[tuple[Tensor, Tensor]]) -> bool:
    return any(x.is_cuda for x, _ in pairs)


def read_one_by_one(
    gauges: Mapping[str, Gauge], pairs: Mapping[str, tuple[Tensor, Tensor]]
) -> list[dict[str, float]]:
    """As `read_gauges` does on a CPU: a thread for each pair."""
    if len(pairs) < 2:
        return [_one(gauges, *item) for item in pairs.items()]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a pair for each core is faster than all cores for each pair
    try:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda item: _one(gauges, *item), pairs.items()))
    finally:
        torch.set_num_threads(threads)


def _one(gauges: Mapping[str, Gauge], name: str, pair: tuple[Tensor, Tensor]) -> dict[str, float]:
    found: dict[str, float] = {}
    with torch.no_grad():  # which is not inherited by threads
        for gauge_name, gauge in gauges.items():
            try:
                value = _called(gauge, pair)
                numbers = value if isinstance(value, Mapping) else {"": value}
                found |= {_column(gauge_name, key): float(number) for key, number in numbers.items()}
            except (InputError, NumericalError) as error:
                raise type(error)(f"{name}: {gauge_name}: {error}") from error
            except FathometerError as error:
                raise FathometerError(f"{name}: {gauge_name}: {error}") from error
            except Exception as error:  # a gauge may be the code of others
                if isinstance(error, MemoryError | torch.OutOfMemoryError):
                    raise
                raise FathometerError(
                    f"{name}: {gauge_name}: expected a number, or a dict of them, got {error!r}"
                ) from error
    return found


def _called(gauge: Gauge, pair: tuple[Tensor, Tensor]) -> GaugeValue:
    """What a gauge gives; where it fails, in whose code."""
    try:
        return gauge(*pair)
    except (FathometerError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # a gauge may be the code of others
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}, line {last.lineno}"
        raise FathometerError(f"it raised {error!r} ({place})") from error


@torch.no_grad()
def read_together(
    gauges: Mapping[str, Gauge], pairs: Mapping[str, tuple[Tensor, Tensor]]
) -> list[dict[str, float]]:
    """As `read_gauges` does on a GPU: pairs of one shape in one batch; all numbers leave it at once."""
    every = list(pairs.values())
    alike: dict[tuple[object, ...], list[int]] = {}
    for place, (x, y) in enumerate(every):
        alike.setdefault((x.shape, x.dtype, y.shape, y.dtype), []).append(place)
    groups = [
        (places, torch.stack([every[p][0] for p in places]), torch.stack([every[p][1] for p in places]))
        for places in alike.values()
    ]
    singles = [([place], x, y) for place, (x, y) in enumerate(every)]
    columns: dict[str, Tensor] = {}

    def put(column: str, places: Sequence[int], numbers: Tensor) -> None:
        whole = columns.setdefault(column, torch.full((len(every),), torch.nan, dtype=torch.float64))
        columns[column] = whole.to(numbers.device)
        columns[column][places] = numbers.double()

    for name, gauge in gauges.items():
        of_many = next((many for one, many in _OF_MANY if one is gauge), None)
        if of_many is not None:
            columns[name] = of_many(every)
            continue
        for places, x, y in groups if gauge in GAUGES.values() else singles:
            value = gauge(x, y)
            for key, numbers in value.items() if isinstance(value, Mapping) else [("", value)]:
                put(_column(name, key), places, torch.as_tensor(numbers).reshape(-1))
    lists = {name: column.tolist() for name, column in columns.items()}
    return [{name: values[i] for name, values in lists.items()} for i in range(len(pairs))]


def _column(gauge: str, key: str) -> str:
    return f"{gauge}_{key}" if key else gauge
