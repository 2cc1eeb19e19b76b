"""Several soundings as a page: laid over each other, distances, numbers, years, what foretells accuracy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import pandas as pd

from fathometer.compare import (
    Clustering,
    best_predictors,
    cluster,
    comparable,
    family_agreement,
    signature_distances,
    signatures,
    statistics,
)
from fathometer.compare.soundings import ASPECTS, Soundings, labels_of
from fathometer.errors import InputError
from fathometer.report.numbers import in_words
from fathometer.report.page.items import Item, Page, Section, Table, View, Words
from fathometer.report.page.networks import facts_beside, hues, members_of, network_data
from fathometer.report.page.overlay_charts import overlay_charts
from fathometer.report.page.several_charts import predictor_charts, years_chart
from fathometer.report.page.tree_chart import MOST, tree_chart
from fathometer.results.sounding import Sounding

_GAUGE = "affinity"
_FEW = 8  # lines that can be told apart; of more networks the first six are shown at first


def several_page(
    soundings: Soundings,
    facts: pd.DataFrame | None = None,
    *,
    allow_mismatch: bool = False,
    title: str | None = None,
) -> Page:
    """The report of at least two soundings that can be compared.

    Distances and numbers are of affinity scores; the overlay shows every gauge that all hold.

    Args:
        soundings: by name, or a list.
        facts: network × family, accuracy, depth, parameters, gflops, year, as far as known; what the
            soundings themselves or torchvision say, if left out.
        allow_mismatch: also where data, reduction or samples differ; the page says so.
        title: of the page.
    """
    named, complaints = _comparable(soundings, allow_mismatch)
    if len(named) < 2:
        raise InputError(
            f"expected at least two soundings with {_GAUGE!r}, got {', '.join(named)}; give more"
        )
    known = facts_beside(named, facts)
    members = members_of(known)
    sections = [Section("", (*map(Words, complaints), overlay_view(named, members)))]
    try:
        tree = cluster(signature_distances(signatures(named, _GAUGE), gauge=_GAUGE))
    except InputError as error:  # a site has no value: the overlay has gaps, a distance cannot have any
        sections.append(Section("Distances", (Words(f"No distances: {error}"),)))
    else:
        numbers = statistics(named, _GAUGE)
        sections.append(Section("Distances", _distances(tree, members)))
        sections.append(Section("Numbers", (_numbers(numbers.loc[list(tree.names)], known),)))
        if "year" in known.columns:
            sections.append(Section("Over the years", (years_chart(numbers, known, _GAUGE),)))
        sections += _foretold(numbers, known, members)
    sections.append(Section("Where they came from", (Table(_origins(named)),)))
    data = _origins(named)["data"]
    on = data.iloc[0] if data.nunique() == 1 else f"{data.nunique()} data sets"
    families = f", {len(set(members.values()))} families" if members else ""
    lead = f"{len(named)} networks on {on}{families}"
    return Page(title or _title(named), lead, tuple(sections))


def overlay_view(named: Mapping[str, Sounding], members: Mapping[str, str]) -> View:
    """The networks laid over each other, by their affinity at first; of many, families give the colours."""
    colours, own = hues(sorted(set(members.values()))), hues(named)
    networks = [
        {
            **network_data(sounding, name),
            "family": members.get(name),
            "hue": own[name],
            "family_hue": colours.get(members.get(name, "")),
        }
        for name, sounding in named.items()
    ]
    shown = len(named) if len(named) <= _FEW else 6
    return View("overlay", {"networks": networks, "gauge": _GAUGE, "shown": shown}, overlay_charts())


def _comparable(soundings: Soundings, allow_mismatch: bool) -> tuple[dict[str, Sounding], list[str]]:
    """The soundings by name, and what was said against comparing them."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        named = comparable(soundings, _GAUGE, allow_mismatch=allow_mismatch)
    complaints = [str(warning.message) for warning in said]
    for complaint in complaints:
        warnings.warn(complaint, stacklevel=3)
    return named, [f"{complaint[0].upper()}{complaint[1:]}." for complaint in complaints]


def _distances(tree: Clustering, members: Mapping[str, str]) -> tuple[Item, ...]:
    found = tree.distances
    agreement = "" if math.isnan(tree.cophenetic) else f" Cophenetic correlation {tree.cophenetic:.3f}: "
    words = f"DTW distances of {in_words(found.gauge)}, {tree.method} linkage.{agreement}" + (
        "how well the tree tells the distances, 1 is best." if agreement else ""
    )
    if len(set(members.values())) > 1:
        words += _together(family_agreement(found, members))
    if len(found.names) > MOST:
        return (Words(f"{words} The matrix of more than {MOST} networks is not drawn here."),)
    return (Words(words), tree_chart(tree, members))


def _together(agreement: pd.DataFrame) -> str:
    judged = agreement[agreement["same"].notna()]
    if judged.empty:
        return ""
    return (
        f" The nearest neighbour is of the own family for {int((judged['same'] == True).sum())} of "  # noqa: E712
        f"{len(judged)} networks; mean silhouette {judged['silhouette'].mean():.2f}."
    )


def _numbers(numbers: pd.DataFrame, facts: pd.DataFrame) -> Table:
    beside = facts.loc[numbers.index]
    table = pd.concat([beside[["family"]], numbers, beside.drop(columns="family")], axis=1)
    if beside["family"].isna().all():
        table = table.drop(columns="family")
    caption = (
        f"{in_words(_GAUGE)} over the sites of each network, in the order of the tree. low, high, share and "
        "ashman are of a fit of two modes; dip and p of Hartigan's test for one mode; bimodal: p below 0.05."
    )
    return Table(table.reset_index(names="network"), caption[0].upper() + caption[1:])


def _foretold(numbers: pd.DataFrame, facts: pd.DataFrame, members: Mapping[str, str]) -> list[Section]:
    """Nothing where accuracies are unknown; a word where no family has three of them."""
    if "accuracy" not in facts.columns:
        return []
    title = "What foretells accuracy"
    try:
        best = best_predictors(numbers, facts, members)
    except InputError as error:
        return [Section(title, (Words(f"No predictor: {error}."),))]
    words = Words(
        "Of each family the best statistic of the signature and the best characteristic of the network, by "
        "R² of a line. Left out: R² for networks that the line has not seen, below 0 if worse than the mean "
        "of the others. Chance: the share of orders of the accuracies for which the best one is as good."
    )
    charts = predictor_charts(best, numbers, facts, members)
    return [Section(title, (words, *charts, Table(best)))]


def _origins(named: Mapping[str, Sounding]) -> pd.DataFrame:
    aspects = {aspect: labels_of(list(named.values()), aspect) for aspect in ASPECTS}
    rows: list[dict[str, Any]] = []
    for place, (name, sounding) in enumerate(named.items()):
        facts = sounding.provenance
        rows.append(
            {
                "network": name,
                "model": str(facts.model.get("name", "?")),
                **{aspect: labels[place] for aspect, labels in aspects.items()},
                "batches": int(sounding.records["batch"].nunique()),
                "date": facts.date,
                "device": facts.device,
            }
        )
    return pd.DataFrame(rows)


def _title(named: Mapping[str, Sounding]) -> str:
    return " and ".join(named) if len(named) == 2 else f"{len(named)} networks side by side"
