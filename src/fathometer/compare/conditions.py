"""What else changes a signature: data, batch size, seed, pooling, training (Figures 7 to 9, 15, Table 3)."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest

import numpy as np
import pandas as pd

from fathometer.compare.distance import Metric, signature_distances
from fathometer.compare.predict import COMPANIONS
from fathometer.compare.soundings import (
    ALIKE,
    ASPECTS,
    Soundings,
    aspects_of,
    by_name,
    comparable,
    counted_name,
    has_random_weights,
    labels_of,
    short_name,
    signatures,
    with_counts,
)
from fathometer.errors import InputError
from fathometer.results.sounding import Sounding


def data_deviation(
    soundings: Soundings,
    reference: str,
    gauge: str = "affinity",
    metric: Metric = "euclidean",
    *,
    allow_mismatch: bool = False,
) -> pd.DataFrame:
    """Compute the distance of each network's signature on other data from that on reference data (Figure 15).

    Network × data. The figure's caption says Euclidean distance, the text of Appendix H says DTW; a network
    has the same number of sites on all data, so both can be computed. DTW is never larger.

    Args:
        soundings: of networks with the same weights on several data sets.
        reference: name of the data to compare the others with, also with their count (`random:192`); for
            data without a name, such as tensors, the start of the hash of their first sample.
        gauge: the gauge to compare.
        metric: `euclidean`, `dtw` or `wasserstein`.
        allow_mismatch: also compare soundings that differ in reduction or samples, with a warning.
    """
    named = by_name(soundings)
    words = dict(zip(named, aspects_of(list(named.values()), "data"), strict=True))
    rows: dict[str, dict[str, float]] = {}
    for network, group in _networks(named, "data").items():
        kept = comparable(group, gauge, alike=_others("data"), allow_mismatch=allow_mismatch)
        labels = with_counts([words[name] for name in kept], list(kept.values()))
        data = dict(zip(kept, labels, strict=True))
        by_data = _by_value(network, kept, "data", data)
        wanted = _known_data(reference, data, kept)
        if wanted not in by_data:
            raise InputError(
                f"{network}: expected a sounding on {reference!r}, got {', '.join(by_data)}",
                parameter="reference",
            )
        found = signature_distances(signatures(by_data, gauge), metric, gauge=gauge)
        row = found.matrix[found.names.index(wanted)]
        rows[network] = {d: float(value) for d, value in zip(found.names, row, strict=True) if d != wanted}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("network")
    if not len(table.columns):
        raise InputError(f"expected soundings on other data besides {reference!r}; got none")
    return table


def signature_table(
    soundings: Soundings, over: str, gauge: str = "affinity", *, allow_mismatch: bool = False
) -> pd.DataFrame:
    """Return the signatures of one network side by side: site × value of what was changed (Figures 7 to 9).

    Args:
        soundings: of one network.
        over: what differs: `samples` (in a batch), `seed`, `pooling`, `weights` or `data`.
        gauge: the gauge to compare.
        allow_mismatch: also compare soundings that differ in other aspects, with a warning.
    """
    groups = _networks(by_name(soundings), over)
    if len(groups) != 1:
        raise InputError(f"expected soundings of one network, got {', '.join(groups)}")
    ((network, group),) = groups.items()
    return _side_by_side(network, group, over, gauge, allow_mismatch)


def robustness(
    soundings: Soundings, over: str, gauge: str = "affinity", *, allow_mismatch: bool = False
) -> pd.DataFrame:
    """Measure how much the signature of each network changes with one condition (Figures 7 and 8).

    A row for each network: `values` that were tried, `std` over these (population; the mean over sites),
    `largest` difference between two of them at one site, and `batch_std`, the standard deviation over batches
    (the mean over sites and values), for comparison. `over` and `allow_mismatch` as in `signature_table`.
    """
    rows = {}
    for network, group in _networks(by_name(soundings), over).items():
        table = _side_by_side(network, group, over, gauge, allow_mismatch)
        noise = [s.std(gauge).mean() for s in group.values() if gauge in s.gauges]
        rows[network] = {
            "values": len(table.columns),
            "std": float(table.std(axis=1, ddof=0).mean()),
            "largest": float((table.max(axis=1) - table.min(axis=1)).max()),
            "batch_std": float(np.mean(noise)),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("network")


def training_change(
    before: Sounding, after: Sounding, gauge: str = "affinity", *, allow_mismatch: bool = False
) -> pd.DataFrame:
    """Compare a network at initialisation and after training, site by site (Figure 9).

    Example:
        >>> import torch
        >>> from fathometer import measure
        >>> net, data = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), torch.randn(50, 4)
        >>> start = measure(net, data, samples=50)
        >>> training_change(start, start).columns.to_list()
        ['before', 'after', 'change']
    """
    named = comparable({"before": before, "after": after}, gauge, allow_mismatch=allow_mismatch)
    if len(named) < 2:
        raise InputError(f"{gauge!r} was measured in one of the two only; choose another gauge")
    table = _by_site(named, gauge)
    return table.assign(change=table["after"] - table["before"])


def criteria_spread(
    soundings: Soundings, criteria: Sequence[str] | None = None, *, allow_mismatch: bool = False
) -> pd.DataFrame:
    """Compute mean and population std of each criterion over several trainings of one architecture (Table 3).

    A network's value is the mean over its sites and batches. Criteria have different units, so that their
    standard deviations cannot be compared; `relative` is std / |mean|.

    Args:
        soundings: one architecture, trained in different ways; all must have the same sites.
        criteria: gauges; by default affinity and those of the paper's companions that all soundings hold.
            Those without a value at some site are left out with a warning.
        allow_mismatch: also compare soundings that differ in data, reduction or samples, with a warning.
    """
    named = by_name(soundings)
    if len(named) < 2:
        raise InputError("expected soundings of at least two trainings, got one")
    _one_architecture(named)
    shared = [g for g in next(iter(named.values())).gauges if all(g in s.gauges for s in named.values())]
    wanted = [c for c in ("affinity", *COMPANIONS) if c in shared] if criteria is None else list(criteria)
    missing = [criterion for criterion in wanted if criterion not in shared]
    if missing or not wanted:
        raise InputError(
            f"{', '.join(missing) or 'affinity'} was not measured in all of these; they share "
            f"{', '.join(shared) or 'nothing'}",
            parameter="criteria",
        )
    comparable(named, wanted[0], allow_mismatch=allow_mismatch)  # all have all of them
    values: dict[str, list[float]] = {}
    for criterion in wanted:
        try:
            found = signatures(named, criterion)
        except InputError as error:
            if criteria is not None:
                raise
            warnings.warn(f"left out: {error}", stacklevel=2)
        else:
            values[criterion] = [float(series.mean()) for series in found.values()]
    table = pd.DataFrame(values)
    mean, std = table.mean(), table.std(ddof=0)
    spread = pd.DataFrame({"mean": mean, "std": std, "relative": std / mean.abs(), "networks": len(table)})
    return spread.rename_axis("criterion")


def _networks(named: Mapping[str, Sounding], over: str) -> dict[str, dict[str, Sounding]]:
    """Group soundings by network: the same name and, unless weights are compared, the same weights."""
    soundings = list(named.values())
    if over not in ASPECTS:
        raise InputError(f"expected one of {', '.join(ASPECTS)}, got {over!r}", parameter="over")
    weights = [""] * len(soundings) if over == "weights" else aspects_of(soundings, "weights")
    networks: dict[str, dict[str, dict[str, Sounding]]] = {}
    for (name, sounding), digest in zip(named.items(), weights, strict=True):
        networks.setdefault(short_name(sounding), {}).setdefault(digest, {})[name] = sounding
    found: dict[str, dict[str, Sounding]] = {}
    for network, trainings in networks.items():
        groups = list(trainings.values())
        if over == "seed":
            _check_seeds(network, groups)
        labels = labels_of([next(iter(group.values())) for group in groups], "weights")
        names = [network] if len(groups) == 1 else [f"{network}, {label}" for label in labels]
        found |= dict(zip(names, groups, strict=True))
    return found


def _check_seeds(network: str, trainings: Sequence[Mapping[str, Sounding]]) -> None:
    """Refuse seeds with different weights: they show more than the order of the data."""
    seeds = [set(aspects_of(list(group.values()), "seed")) for group in trainings]
    if len(trainings) == 1 or max(map(len, seeds)) > 1 or len(set.union(*seeds)) == 1:
        return
    drawn = all(has_random_weights(sounding) for group in trainings for sounding in group.values())
    reason = "the seed also drew the weights" if drawn else "the weights differ with each seed"
    raise InputError(f"{network}: {reason}; compare over weights instead", parameter="over")


def _known_data(reference: str, data: Mapping[str, str], named: Mapping[str, Sounding]) -> str:
    """Find the data meant by a name, the start of a hash, or a name with a count; else return the name."""
    if reference in data.values():
        return reference
    fits = {
        label
        for name, label in data.items()
        if reference in (label.split(" ")[0], label.split(" ")[-1], counted_name(named[name]))
        or label.rpartition(":")[0] == reference
    }
    if len(fits) > 1:
        raise InputError(
            f"expected one of {', '.join(sorted(fits))}, got {reference!r}", parameter="reference"
        )
    return fits.pop() if fits else reference


def _by_value(
    network: str, group: Mapping[str, Sounding], over: str, values: Mapping[str, str]
) -> dict[str, Sounding]:
    found: dict[str, Sounding] = {}
    for name, sounding in group.items():
        value = values[name]
        if value in found:
            raise InputError(f"{network}: two soundings with {over} {value}; leave one of them out")
        found[value] = sounding
    return found


def _side_by_side(
    network: str, group: dict[str, Sounding], over: str, gauge: str, allow_mismatch: bool
) -> pd.DataFrame:
    kept = comparable(group, gauge, alike=_others(over), allow_mismatch=allow_mismatch)
    if len(kept) < 2:
        raise InputError(f"{network}: expected soundings that differ in {over}, got one")
    values = dict(zip(kept, labels_of(list(kept.values()), over), strict=True))
    return _by_site(_by_value(network, kept, over, values), gauge)


def _by_site(named: Mapping[str, Sounding], gauge: str) -> pd.DataFrame:
    sites = _one_architecture(named)
    return pd.DataFrame(signatures(named, gauge), index=pd.Index(sites, name="site"))


def _one_architecture(named: Mapping[str, Sounding]) -> list[str]:
    """Return the sites that all share; refuse soundings with other sites by name."""
    sites = {name: tuple((s.name, s.operator) for s in sounding.sites) for name, sounding in named.items()}
    usual = Counter(sites.values()).most_common(1)[0][0]
    first = next(name for name, own in sites.items() if own == usual)
    odd = []
    for name, own in sites.items():
        if own != usual:
            apart = next(a or b for a, b in zip_longest(own, usual) if a != b)
            odd.append(f"{name} has {len(own)} sites, first different at {apart[0]}")
    if odd:
        raise InputError(
            f"expected soundings of one architecture, with the same sites: {first} has {len(usual)}, but "
            f"{'; '.join(odd[:8])}; leave out those of another"
        )
    return [name for name, _ in usual]


def _others(over: str) -> tuple[str, ...]:
    return tuple(aspect for aspect in ALIKE if aspect != over)
