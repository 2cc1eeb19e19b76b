"""What else changes a signature: data, batch size, seed, pooling, training (Figures 7 to 9, 15, Table 3)."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest

import numpy as np
import pandas as pd

from fathometer.compare.distance import Metric, known_distances
from fathometer.compare.predict import COMPANIONS
from fathometer.compare.soundings import (
    ASPECTS,
    MUST_AGREE,
    Soundings,
    aspects_of,
    by_name,
    comparable,
    labels_of,
    plan_label,
    short_name,
    signatures,
)
from fathometer.errors import InputError, check_choice
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
        reference: name of the data to compare the others with, as in the plan of a survey, or also with
            their count (`random:192`); for data without a name, such as tensors, the start of the hash of
            their first sample.
        gauge: the gauge to compare.
        metric: `euclidean`, or another one of `distances`.
        allow_mismatch: also compare soundings that differ in reduction or samples, with a warning.
    """
    rows: dict[str, dict[str, float]] = {}
    for network, by_data in _by_condition(soundings, "data", gauge, allow_mismatch).items():
        wanted = _find_reference(reference, by_data)
        if wanted not in by_data:
            raise InputError(
                f"{network}: expected a sounding on {reference!r}, got {', '.join(_data_names(by_data))}",
                parameter="reference",
            )
        found = known_distances(by_data, gauge, metric)
        row = found.matrix[found.names.index(wanted)]
        rows[network] = {
            name: float(value)
            for name, data, value in zip(_data_names(by_data), by_data, row, strict=True)
            if data != wanted
        }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("network")
    if not len(table.columns):
        raise InputError(f"expected soundings on other data besides {reference!r}; got none")
    return table


def signatures_over(
    soundings: Soundings, over: str, gauge: str = "affinity", *, allow_mismatch: bool = False
) -> pd.DataFrame:
    """Return the signatures of one network side by side: site × value of what was changed (Figures 7 to 9).

    For two soundings over `weights`, before and after a training, `.diff(axis=1)` is the change.

    Args:
        soundings: of one network.
        over: what differs: `samples` (in a batch), `seed`, `pooling`, `weights` or `data`.
        gauge: the gauge to compare.
        allow_mismatch: also compare soundings that differ in other aspects, with a warning.
    """
    networks = _by_condition(soundings, over, gauge, allow_mismatch)
    if len(networks) != 1:
        raise InputError(f"expected soundings of one network, got {', '.join(networks)}")
    ((network, by_value),) = networks.items()
    return _table(network, by_value, over, gauge)


def robustness(
    soundings: Soundings, over: str, gauge: str = "affinity", *, allow_mismatch: bool = False
) -> pd.DataFrame:
    """Measure how much the signature of each network changes with one condition (Figures 7 and 8).

    A row for each network: `values` that were tried, `std` over these (population; the mean over sites),
    `largest` difference between two of them at one site, and `batch_std`, the standard deviation over batches
    (the mean over sites and values), for comparison. `over` and `allow_mismatch` as in `signatures_over`.
    """
    rows = {}
    for network, by_value in _by_condition(soundings, over, gauge, allow_mismatch).items():
        table = _table(network, by_value, over, gauge)
        rows[network] = {
            "values": len(table.columns),
            "std": float(table.std(axis=1, ddof=0).mean()),
            "largest": float((table.max(axis=1) - table.min(axis=1)).max()),
            "batch_std": float(np.mean([sounding.std(gauge).mean() for sounding in by_value.values()])),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("network")


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
    weights = [""] * len(soundings) if over == "weights" else aspects_of(soundings, "weights")
    networks: dict[str, dict[str, dict[str, Sounding]]] = {}
    for (name, sounding), digest in zip(named.items(), weights, strict=True):
        networks.setdefault(short_name(sounding), {}).setdefault(digest, {})[name] = sounding
    found: dict[str, dict[str, Sounding]] = {}
    for network, trainings in networks.items():
        groups = list(trainings.values())
        labels = labels_of([next(iter(group.values())) for group in groups], "weights")
        names = [network] if len(groups) == 1 else [f"{network}, {label}" for label in labels]
        found |= dict(zip(names, groups, strict=True))
    return found


def _data_names(by_data: Mapping[str, Sounding]) -> list[str]:
    """Return the names of the data in the plan of a survey if they tell all apart, else the labels."""
    names = [plan_label(sounding, "data") for sounding in by_data.values()]
    return names if all(names) and len(set(names)) == len(names) else list(by_data)


def _find_reference(reference: str, by_data: Mapping[str, Sounding]) -> str:
    """Find the data by name, name in a plan, name with count, or start of a hash; else return the name."""
    if reference in by_data:
        return reference
    fits = []
    for label, sounding in by_data.items():
        data = sounding.provenance.data
        counted = f"{data.get('name', '?')}:{data.get('count', '?')}"
        parts = label.split(" ")[0], label.split(" ")[-1], label.rpartition(":")[0]
        if reference in (*parts, counted, plan_label(sounding, "data")):
            fits.append(label)
    if len(fits) > 1:
        raise InputError(
            f"expected one of {', '.join(sorted(fits))}, got {reference!r}", parameter="reference"
        )
    return fits[0] if fits else reference


def _by_condition(
    soundings: Soundings, over: str, gauge: str, allow_mismatch: bool
) -> dict[str, dict[str, Sounding]]:
    """Return the soundings of each network by the value of what was changed."""
    check_choice("over", over, ASPECTS)
    named = by_name(soundings, gauge)
    words = dict(zip(named, aspects_of(list(named.values()), over), strict=True))
    alike = [aspect for aspect in MUST_AGREE if aspect != over]
    found: dict[str, dict[str, Sounding]] = {}
    for network, group in _networks(named, over).items():
        kept = comparable(group, gauge, alike=alike, allow_mismatch=allow_mismatch)
        labels = labels_of(list(kept.values()), over, [words[name] for name in kept])
        found[network] = by_value = {}
        for value, sounding in zip(labels, kept.values(), strict=True):
            if value in by_value:
                raise InputError(f"{network}: two soundings with {over} {value}; leave one of them out")
            by_value[value] = sounding
    return found


def _table(network: str, by_value: Mapping[str, Sounding], over: str, gauge: str) -> pd.DataFrame:
    """Return site × value."""
    if len(by_value) < 2:
        hint = "; if the weights differ with the seed, compare over weights" if over == "seed" else ""
        raise InputError(f"{network}: expected soundings that differ in {over}, got one{hint}")
    sites = _one_architecture(by_value)
    return pd.DataFrame(signatures(by_value, gauge), index=pd.Index(sites, name="site"))


def _one_architecture(named: Mapping[str, Sounding]) -> list[str]:
    """Return the sites that all share; refuse soundings with other sites by name."""
    sites = {name: tuple((s.name, s.operator) for s in sounding.sites) for name, sounding in named.items()}
    usual = Counter(sites.values()).most_common(1)[0][0]
    first = next(name for name, own in sites.items() if own == usual)
    odd = []
    for name, own in sites.items():
        if own != usual:
            different = next(a or b for a, b in zip_longest(own, usual) if a != b)
            odd.append(f"{name} has {len(own)} sites, first different at {different[0]}")
    if odd:
        raise InputError(
            f"expected soundings of one architecture, with the same sites: {first} has {len(usual)}, but "
            f"{'; '.join(odd[:8])}; leave out those of another"
        )
    return [name for name, _ in usual]
