"""Several soundings as a page: compared with each other, or all of a survey as an atlas."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from fathometer.compare import (
    Clustering,
    best_predictors,
    by_name,
    cluster,
    comparable,
    facts_of,
    family_agreement,
    known_distances,
    known_facts,
    statistics,
)
from fathometer.compare.soundings import ASPECTS, Soundings, labels_of
from fathometer.errors import InputError
from fathometer.report.blocks import blocks_of
from fathometer.report.numbers import gauge_label
from fathometer.report.page.charts import atlas_charts, category_colours, overlay_charts
from fathometer.report.page.document import json_value, packed
from fathometer.report.page.items import Item, Page, Paragraph, Section, Table, View
from fathometer.report.page.layers import layer_items
from fathometer.report.page.network_charts import MAX_MATRIX, predictor_chart, tree_chart, years_chart
from fathometer.report.page.sounding import PROVENANCE, data_name, provenance_facts, sounding_data
from fathometer.report.tables import families_of, has_layers, predictor_table, year_table
from fathometer.results.provenance import weights_identity
from fathometer.results.sounding import Sounding

_GAUGE = "affinity"
_MAX_LINES = 8  # lines that can be told apart; of more networks the first six are shown at first


def comparison_page(
    soundings: Soundings,
    facts: pd.DataFrame | None = None,
    *,
    allow_mismatch: bool = False,
    title: str | None = None,
) -> Page:
    """Return the report of at least two soundings that can be compared.

    Distances and statistics are of affinity scores, which only transformers that are shown by layer may lack;
    the overlay shows every gauge that all have. With `allow_mismatch` data, reduction or samples may differ;
    the page says so.
    """
    named, mismatch_warnings = _comparable(soundings, allow_mismatch)
    if len(named) < 2:
        raise InputError(f"expected at least two soundings to compare, got {', '.join(named)}; give more")
    known = facts_table(named, facts)
    members = families_of(known)
    overlay, notes = overlay_view(named, members), tuple(map(Paragraph, mismatch_warnings))
    if all(map(has_layers, named.values())):
        sections = [Section("By layer", (*notes, *layer_items(named))), Section("Sites", (overlay,))]
    else:
        sections = [Section("", (*notes, overlay))]
    if any(_GAUGE in sounding.gauges for sounding in named.values()):
        sections += _score_sections(named, known)
    origins = _origins(named)
    sections.append(Section(PROVENANCE, (Table(origins),)))
    data = origins["data"].unique()
    on = data[0] if len(data) == 1 else f"{len(data)} data sets"
    families = f", {len(set(members.values()))} families" if members else ""
    name = " and ".join(named) if len(named) == 2 else f"{len(named)} networks compared"
    return Page(title or name, f"{len(named)} networks on {on}{families}", tuple(sections))


def atlas_page(soundings: Soundings, facts: pd.DataFrame | None = None, *, title: str | None = None) -> Page:
    """Return the report of many soundings; they may differ in data, settings and gauges."""
    named = by_name(soundings)
    known = facts_table(named, facts)
    data = {data_name(sounding) for sounding in named.values()}
    families = len(set(families_of(known).values()))
    parts = [_counted(named), f"on {data.pop()}" if len(data) == 1 else f"on {len(data)} data sets"]
    if families:
        parts.insert(1, "1 family" if families == 1 else f"{families} families")
    view = View("atlas", atlas_data(named, known), atlas_charts())
    return Page(title or "Atlas", ", ".join(parts), (Section("", (view,)),))


def atlas_data(named: Mapping[str, Sounding], facts: pd.DataFrame) -> dict[str, Any]:
    """Return what the view shows: the networks, the colours of families, and the names of the facts."""
    members = families_of(facts)
    numbers = facts.drop(columns="family")
    networks = [
        {
            **network_data(sounding, name),
            "family": members.get(name),
            "data": data_name(sounding),
            "origin": dict(provenance_facts(sounding.provenance).pairs),
            "facts": {str(key): json_value(value) for key, value in numbers.loc[name].items()},
        }
        for name, sounding in named.items()
    ]
    families = category_colours(sorted(set(members.values())))
    return {"networks": networks, "families": families, "facts": [str(name) for name in numbers.columns]}


def overlay_view(named: Mapping[str, Sounding], members: Mapping[str, str]) -> View:
    """Return the networks over each other, by their affinity at first; many are coloured by family."""
    colours, own = category_colours(sorted(set(members.values()))), category_colours(named)
    networks = [
        {
            **network_data(sounding, name),
            "family": members.get(name),
            "hue": own[name],
            "family_hue": colours.get(members.get(name, "")),
        }
        for name, sounding in named.items()
    ]
    shown = len(named) if len(named) <= _MAX_LINES else 6
    return View("overlay", {"networks": networks, "gauge": _GAUGE, "shown": shown}, overlay_charts())


def network_data(sounding: Sounding, name: str) -> dict[str, Any]:
    """Return a sounding as `Network` in `overlay.js` takes it: no single batches, numbers packed."""
    data = sounding_data(sounding, name)
    del data["sites"]["block"]  # many times the same long name: `blocks` has it
    data["blocks"] = [[b.label, b.start, b.stop, b.name] for b in blocks_of(sounding.sites)]
    grouped = sounding.records.groupby("site", sort=False)[sounding.gauges]
    means, stds = (part.reindex([s.name for s in sounding.sites]) for part in (grouped.mean(), grouped.std()))
    kept = stds.columns if stds.notna().any(axis=None) else ()
    return data | {
        "mean": {gauge: packed(means[gauge]) for gauge in sounding.gauges},
        "std": {gauge: packed(stds[gauge]) for gauge in kept},
        "summary": {gauge: packed(_summary(means[gauge])) for gauge in sounding.gauges},
    }


def _summary(values: pd.Series[float]) -> list[float]:
    """Return min, median, max and spread over the sites with a finite value."""
    known = values[np.isfinite(values.to_numpy(float))]
    return [known.min(), known.median(), known.max(), known.max() - known.min()]


def facts_table(named: Mapping[str, Sounding], facts: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return a row for each network: `family` (or None), and the numbers of which any is known.

    Without `facts`, these are what the soundings themselves or torchvision say. `measured_accuracy` is
    that of the measured samples, where they have labels.
    """
    found = (known_facts(named) if facts is None else facts_of(named, facts)).reindex(list(named))
    found["measured_accuracy"] = pd.Series({name: each.accuracy for name, each in named.items()}, dtype=float)
    table = found.select_dtypes("number").dropna(axis="columns", how="all")
    members = families_of(found)
    table.insert(0, "family", pd.Series({name: members.get(name) for name in named}, dtype=object))
    return table.rename_axis("network")


def _counted(named: Mapping[str, Sounding]) -> str:
    """Say how many networks, and how many soundings if some networks have several."""
    models = [sounding.provenance.model for sounding in named.values()]
    found = {(str(model.get("name")), str(model.get("weights")), weights_identity(model)) for model in models}
    networks = "1 network" if len(found) == 1 else f"{len(found)} networks"
    return networks if len(found) == len(named) else f"{len(named)} soundings of {networks}"


def _comparable(soundings: Soundings, allow_mismatch: bool) -> tuple[dict[str, Sounding], list[str]]:
    """Return the soundings by name, and the warnings about comparing them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        named = by_name(soundings)
        gauge = "r2_heldout" if all(map(has_layers, named.values())) else _GAUGE
        named = comparable(named, gauge, allow_mismatch=allow_mismatch)
    mismatch_warnings = [str(warning.message) for warning in caught]
    for text in mismatch_warnings:
        warnings.warn(text, stacklevel=3)
    return named, [f"{text[0].upper()}{text[1:]}." for text in mismatch_warnings]


def _score_sections(named: Mapping[str, Sounding], known: pd.DataFrame) -> list[Section]:
    """Return what is computed from the affinity scores."""
    try:
        tree = cluster(known_distances(named, _GAUGE))
    except InputError as error:  # a site has no value: the overlay has gaps, a distance cannot have any
        return [Section("Distances", (Paragraph(f"No distances: {error.reason}"),))]
    members, numbers = families_of(known), statistics(named, _GAUGE)
    sections = [
        Section("Distances", _distances(tree, members)),
        Section("Statistics", (_statistics(numbers.loc[list(tree.names)], known),)),
    ]
    if "year" in known.columns:
        years = year_table(named, known, _GAUGE)
        sections.append(Section("Over the years", (years_chart(years, _GAUGE),)))
    return [*sections, *_predictors(numbers, known, members)]


def _distances(tree: Clustering, members: Mapping[str, str]) -> tuple[Item, ...]:
    found = tree.distances
    words = f"Distances ({found.label}) of {gauge_label(found.gauge)}, {tree.method} linkage."
    if not math.isnan(tree.cophenetic):
        words += (
            f" Cophenetic correlation {tree.cophenetic:.3f}: how well the tree represents the distances, "
            "1 is best."
        )
    if len(set(members.values())) > 1:
        agreement = family_agreement(found, members)
        with_family = agreement[agreement["same"].notna()]
        if len(with_family):
            same = int((with_family["same"] == True).sum())  # noqa: E712
            words += (
                f" The nearest neighbour is in the same family for {same} of {len(with_family)} networks; "
                f"mean silhouette {with_family['silhouette'].mean():.2f}."
            )
    if len(found.names) > MAX_MATRIX:
        return (Paragraph(f"{words} The matrix of more than {MAX_MATRIX} networks is not drawn here."),)
    return (Paragraph(words), tree_chart(tree, members))


def _statistics(numbers: pd.DataFrame, facts: pd.DataFrame) -> Table:
    beside = facts.loc[numbers.index]
    table = pd.concat([beside[["family"]], numbers, beside.drop(columns="family")], axis=1)
    if beside["family"].isna().all():
        table = table.drop(columns="family")
    caption = (
        f"{gauge_label(_GAUGE).capitalize()} over the sites of each network, in the order of the tree. low, "
        "high, share and ashman are from a fit of two modes; dip and p from Hartigan's test for one mode; "
        "bimodal means p below 0.05."
    )
    return Table(table.reset_index(names="network"), caption)


def _predictors(numbers: pd.DataFrame, facts: pd.DataFrame, members: Mapping[str, str]) -> list[Section]:
    """Return nothing if accuracies are unknown; a sentence if no family has three of them."""
    if "accuracy" not in facts.columns:
        return []
    title = "What predicts accuracy"
    try:
        best = best_predictors(numbers, facts, members)
    except InputError as error:
        return [Section(title, (Paragraph(f"No predictor: {error}."),))]
    words = Paragraph(
        "For each family the best statistic of the signature and the best characteristic of the network, by "
        "R² of a line. Left out: R² for networks that were not used for the line, below 0 if worse than the "
        "mean of the others. p: the share of permutations of the accuracies for which the best "
        "predictor is as good."
    )
    charts = [predictor_chart(*each) for each in predictor_table(best, numbers, facts, members)]
    return [Section(title, (words, *charts, Table(best)))]


def _origins(named: Mapping[str, Sounding]) -> pd.DataFrame:
    facts = [sounding.provenance for sounding in named.values()]
    aspects = {aspect: labels_of(list(named.values()), aspect) for aspect in ASPECTS}
    return pd.DataFrame(
        {
            "network": list(named),
            "model": [str(each.model.get("name", "?")) for each in facts],
            **aspects,
            "batches": [int(sounding.records["batch"].nunique()) for sounding in named.values()],
            "date": [each.date for each in facts],
            "device": [each.device for each in facts],
        }
    )
