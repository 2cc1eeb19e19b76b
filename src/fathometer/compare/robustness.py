"""What else moves a signature: data, batch size, seed, pooling, training (Figures 7 to 9 and 15, Table 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fathometer.compare.distance import Metric, signature_distances
from fathometer.compare.gathering import (
    ALIKE,
    Soundings,
    aspect_of,
    by_name,
    comparable,
    short_name,
    signatures,
)
from fathometer.compare.relate import COMPANIONS
from fathometer.errors import InputError
from fathometer.sounding import Sounding


def data_deviation(
    soundings: Soundings, reference: str, gauge: str = "affinity", metric: Metric = "euclidean"
) -> pd.DataFrame:
    """How far each network's signature on other data is from that on the reference data (Figure 15).

    Network × data. The figure's caption says Euclidean distance, the text of Appendix H says DTW; a network
    has as many sites on all data, so that both can be had. DTW is never the larger one.

    Args:
        soundings: of networks with the same weights on several data sets.
        reference: the name of the data that the others are held against.
        gauge: what is compared.
        metric: `euclidean`, `dtw` or `wasserstein`.
    """
    rows: dict[str, dict[str, float]] = {}
    for network, group in _networks(soundings, "data").items():
        comparable(group, gauge, alike=_others("data"))
        by_data = _by_value(network, group, "data")
        if reference not in by_data:
            raise InputError(
                f"{network}: expected a sounding on the reference data {reference!r}, "
                f"got {', '.join(by_data)}"
            )
        found = signature_distances(signatures(by_data, gauge), metric, gauge=gauge)
        row = found.matrix[found.names.index(reference)]
        rows[network] = {d: float(value) for d, value in zip(found.names, row, strict=True) if d != reference}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("network")
    if not len(table.columns):
        raise InputError(f"expected soundings on other data than {reference!r} too; got none")
    return table


def signature_table(soundings: Soundings, over: str, gauge: str = "affinity") -> pd.DataFrame:
    """The signatures of one network side by side: site × value of what was changed (Figures 7, 8 and 9).

    Args:
        soundings: of one network.
        over: what differs: `samples` (in a batch), `seed`, `pooling`, `weights` or `data`.
        gauge: what is compared.
    """
    groups = _networks(soundings, over)
    if len(groups) != 1:
        raise InputError(f"expected soundings of one network, got {', '.join(groups)}")
    ((network, group),) = groups.items()
    return _side_by_side(network, group, over, gauge)


def robustness(soundings: Soundings, over: str, gauge: str = "affinity") -> pd.DataFrame:
    """How much the signature of each network moves with one thing that was changed (Figures 7 and 8).

    A row for each network: `values` that were tried, `std` over these (population; the mean over sites),
    `largest` difference between two of them at one site, and `batch_std`, the standard deviation over batches
    (the mean over sites and values), which is there anyway. `over` as in `signature_table`.
    """
    rows = {}
    for network, group in _networks(soundings, over).items():
        table = _side_by_side(network, group, over, gauge)
        rows[network] = {
            "values": len(table.columns),
            "std": float(table.std(axis=1, ddof=0).mean()),
            "largest": float((table.max(axis=1) - table.min(axis=1)).max()),
            "batch_std": float(np.mean([s.std(gauge).mean() for s in group.values()])),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("network")


def training_change(before: Sounding, after: Sounding, gauge: str = "affinity") -> pd.DataFrame:
    """A network at initialisation and after training, site by site: before, after, change (Figure 9).

    Example:
        >>> import torch
        >>> from fathometer import measure
        >>> net, data = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), torch.randn(50, 4)
        >>> start = measure(net, data, samples=50)
        >>> training_change(start, start).columns.to_list()
        ['before', 'after', 'change']
    """
    named = comparable({"before": before, "after": after}, gauge)
    table = _same_sites({name: sounding.mean(gauge) for name, sounding in named.items()}, "training")
    return table.assign(change=table["after"] - table["before"])


def criteria_spread(soundings: Soundings, criteria: Sequence[str] | None = None) -> pd.DataFrame:
    """Each criterion over several trainings of one architecture: mean ± population std (Table 3).

    A network's value is the mean over its sites and batches. Criteria have different units, so that their
    standard deviations cannot be held against each other; `relative` is std / |mean|.

    Args:
        soundings: of one architecture, trained in different ways.
        criteria: gauges; affinity and the companions of the paper that all have, if left out.
    """
    named = by_name(soundings)
    if len(named) < 2:
        raise InputError("expected soundings of at least two trainings, got one")
    shared = [g for g in next(iter(named.values())).gauges if all(g in s.gauges for s in named.values())]
    wanted = [c for c in ("affinity", *COMPANIONS) if c in shared] if criteria is None else list(criteria)
    missing = [criterion for criterion in wanted if criterion not in shared]
    if missing or not wanted:
        raise InputError(
            f"criteria: {', '.join(missing) or 'affinity'} was not measured in all of these; they share "
            f"{', '.join(shared) or 'nothing'}"
        )
    comparable(named, wanted[0])
    values = pd.DataFrame({c: [s.mean(c).mean() for s in named.values()] for c in wanted})
    mean, std = values.mean(), values.std(ddof=0)
    table = pd.DataFrame({"mean": mean, "std": std, "relative": std / mean.abs(), "networks": len(values)})
    return table.rename_axis("criterion")


def _networks(soundings: Soundings, over: str) -> dict[str, dict[str, Sounding]]:
    """Soundings by network: one name and, unless weights are what was changed, the same weights."""
    groups: dict[tuple[str, str], dict[str, Sounding]] = {}
    for name, sounding in by_name(soundings).items():
        aspect_of(sounding, over)  # is there such an aspect?
        weights = "" if over == "weights" else str(aspect_of(sounding, "weights"))
        groups.setdefault((short_name(sounding), weights), {})[name] = sounding
    names = [name for name, _ in groups]
    return {
        name if names.count(name) == 1 else f"{name}, {weights}": group
        for (name, weights), group in groups.items()
    }


def _by_value(network: str, group: dict[str, Sounding], over: str) -> dict[str, Sounding]:
    found: dict[str, Sounding] = {}
    for sounding in group.values():
        value = str(aspect_of(sounding, over))
        if value in found:
            raise InputError(f"{network}: two soundings with {over} {value}; leave one of them out")
        found[value] = sounding
    return found


def _side_by_side(network: str, group: dict[str, Sounding], over: str, gauge: str) -> pd.DataFrame:
    if len(group) < 2:
        raise InputError(f"{network}: expected soundings that differ in {over}, got one")
    comparable(group, gauge, alike=_others(over))
    by_value = _by_value(network, group, over)
    return _same_sites({value: sounding.mean(gauge) for value, sounding in by_value.items()}, network)


def _same_sites(series: dict[str, pd.Series[float]], network: str) -> pd.DataFrame:
    first, *rest = series.values()
    for other in rest:
        if list(other.index) != list(first.index):
            raise InputError(
                f"{network}: expected the same sites in all soundings, got {len(first)} and {len(other)}, "
                f"first apart at {next(iter(set(first.index) ^ set(other.index)), 'their order')}"
            )
    return pd.DataFrame(series).rename_axis("site")


def _others(over: str) -> tuple[str, ...]:
    return tuple(aspect for aspect in ALIKE if aspect != over)
