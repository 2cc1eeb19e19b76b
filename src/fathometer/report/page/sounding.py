"""One sounding as a page, and a training: the signature at every step, what was logged, what changed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fathometer.compare.soundings import plan_label
from fathometer.errors import join_names
from fathometer.report.blocks import blocks_of
from fathometer.report.page.charts import film_charts, sounding_charts
from fathometer.report.page.document import json_value, packed
from fathometer.report.page.items import Facts, Item, Page, Paragraph, Section, View
from fathometer.report.page.layers import layer_items
from fathometer.report.page.similarity import map_chart
from fathometer.report.tables import clear_modes, has_layers, site_table, step_edges
from fathometer.results.checkup import MAX_PLACES, Checkup
from fathometer.results.history import History
from fathometer.results.provenance import Provenance
from fathometer.results.sounding import Sounding

MAX_VALUES = 1_000_000
"""So many numbers of a training go into a page: step × site × gauge. Beyond, some steps are left out."""
MAX_POINTS = 400
"""So many values of a metric are drawn."""

PROVENANCE = "Provenance"


def sounding_page(sounding: Sounding, title: str | None = None) -> Page:
    """Return the report of one sounding."""
    facts = sounding.provenance
    name = title or str(facts.model.get("name", "a network"))
    checkup = sounding.check()
    batches = sounding.records["batch"].nunique()
    only_activations = all(site.kind == "activation" for site in sounding.sites)
    what = (
        "residual blocks" if "path" in facts.settings else "activation sites" if only_activations else "sites"
    )
    lead = (
        f"{len(sounding.sites)} {what} on {facts.data.get('name', 'data')}, "
        f"{batches} {'batch' if batches == 1 else 'batches'} of {facts.settings.get('samples', '?')} samples"
    )
    if sounding.outcome and not sounding.outcome.startswith("no accuracy"):
        lead += f"; {sounding.outcome}"
    if sounding.undersampled:
        lead += f"; left out, with fewer samples: {join_names(sounding.undersampled, 5)}"
        sounding = sounding.with_enough_samples()
    if sounding.few_samples:
        lead += f". {sounding.few_samples}"
    if "affinity" in sounding.gauges:
        lead += ". Affinity score: 1 = affine on these data, lower = more non-linear"
    data = sounding_data(sounding, name)
    data |= {
        "mean": {gauge: packed(sounding.mean(gauge)) for gauge in sounding.gauges},
        "std": {gauge: packed(sounding.std(gauge)) for gauge in sounding.gauges},
        "modes": {gauge: _modes(sounding, gauge) for gauge in sounding.gauges},
        "batches": {gauge: _by_batch(sounding, gauge) for gauge in sounding.gauges},
    }
    view = View("sounding", data, sounding_charts())
    similarity = () if sounding.map is None else (Section("Similarity of sites", (map_chart(sounding),)),)
    origin = Section(PROVENANCE, (provenance_facts(facts),))
    first: tuple[Section, ...] = (Section("", (view,)),)
    if has_layers(sounding):
        first = (Section("By layer", layer_items(sounding)), Section("Sites", (view,)))
    checks = (check_section(checkup),) if checkup.applied else ()
    return Page(name, lead, (*checks, *first, *similarity, origin))


def check_section(checkup: Checkup) -> Section:
    """Return what the rules have found, with the first places of each, and which rules were skipped."""
    items: list[Item] = [Paragraph(f"{checkup.summary}.")]
    for group in checkup.groups():
        first, more = group[0], len(group) - MAX_PLACES
        places = "; ".join(finding.sentence for finding in group[:MAX_PLACES])
        others = f"; and at {more} more {'place' if more == 1 else 'places'}" if more > 0 else ""
        text = (
            f"{first.severity.capitalize()}: {places}{others}. {first.why} Try: {first.advice} [{first.rule}]"
        )
        items.append(Paragraph(text))
    if checkup.skipped:
        items.append(Facts("Rules that were not applied", dict(checkup.skipped)))
    return Section("Check", tuple(items))


def sounding_data(sounding: Sounding, name: str) -> dict[str, Any]:
    """Return what every view of a sounding needs: its name, gauges with values, sites and blocks."""
    sites = site_table(sounding)
    known = [gauge for gauge in sounding.gauges if sounding.records[gauge].notna().any()]
    columns = ("site", "operator", "call", "block", "samples", "features")
    return {
        "name": name,
        "gauges": known or sounding.gauges,
        "sites": {column: [json_value(value) for value in sites[column]] for column in columns},
        "blocks": [[block.label, block.start, block.stop] for block in blocks_of(sounding.sites)],
    }


def provenance_facts(facts: Provenance) -> Facts:
    """Return the provenance as names and values."""
    parts = {"network": facts.model, "data": facts.data, "setting": facts.settings, "version": facts.versions}
    pairs = {
        f"{kind}: {name}": value if isinstance(value, str) else json.dumps(value, default=str)
        for kind, values in parts.items()
        for name, value in values.items()
        if value is not None
    }
    also = {"device": facts.device, "date": facts.date, "seconds": str(facts.seconds)}
    return Facts("Network, data, settings, versions", pairs | also)


def data_name(sounding: Sounding) -> str:
    """Return what the plan of a survey calls the data, or else what they are called themselves."""
    return plan_label(sounding, "data") or str(sounding.provenance.data.get("name", "?"))


def history_page(history: History, title: str | None = None) -> Page:
    """Return the report of a training."""
    last, count = history.soundings[-1], len(history.steps)
    name = title or str(last.provenance.model.get("name", "a network"))
    soundings = "1 sounding" if count == 1 else f"{count} soundings"
    steps = f"step {history.steps[0]}" if count == 1 else f"steps {history.steps[0]} to {history.steps[-1]}"
    lead = (
        f"{soundings} of {len(last.sites)} activation sites, {steps}, on "
        f"{last.provenance.data.get('name', 'data')}"
    )
    view = View("film", film_data(history, name), film_charts())
    origin: tuple[Item, ...] = (*map(Paragraph, _cost(history)), provenance_facts(last.provenance))
    return Page(name, lead, (Section("", (view,)), Section(PROVENANCE, origin)))


def _cost(history: History) -> list[str]:
    """Say how long measuring took, and which soundings failed."""
    found = [f"Measuring took {history.cost}."] if history.cost.seconds else []
    if history.missed:
        listed = "; ".join(f"step {step}: {reason}" for step, reason in history.missed[:3])
        more = "; …" if len(history.missed) > 3 else ""
        found.append(f"Soundings that failed: {len(history.missed)} ({listed}{more}).")
    return found


def film_data(history: History, name: str) -> dict[str, Any]:
    """Return everything that the view shows of a training; `frames` are step × site."""
    kept = frames_kept(history)
    steps = [int(history.steps[place]) for place in kept]
    data = sounding_data(history.soundings[-1], name) | {
        "steps": steps,
        "edges": step_edges(steps).tolist(),
        "left_out": len(history.steps) - len(kept),
        "gauges": history.gauges,
        "metrics": {
            str(metric): _metric(group, steps)
            for metric, group in history.metrics.groupby("name", sort=False)
        },
        **{name: {} for name in ("frames", "errors", "extent", "change")},
    }
    for gauge in history.gauges:
        values = history.table(gauge).to_numpy(float)[kept]
        errors = np.array([history.soundings[place].std(gauge).to_numpy(float) for place in kept])
        spread = np.nan_to_num(errors)  # no error bars where there was one batch
        data["frames"][gauge] = [packed(row) for row in values]
        data["errors"][gauge] = [packed(row) for row in errors] if (spread > 0).any() else None
        data["extent"][gauge] = _extent(np.concatenate([values - spread, values + spread]))
        data["change"][gauge] = {name: packed(part) for name, part in history.change(gauge).items()}
    return data


def frames_kept(history: History, limit: int = MAX_VALUES) -> list[int]:
    """Return which steps are shown: all, or as many as fit, evenly, with the first and the last."""
    count = len(history.steps)
    fitting = max(2, limit // max(len(history.soundings[0].sites) * len(history.gauges), 1))
    if count <= fitting:
        return list(range(count))
    return sorted({round(place) for place in np.linspace(0, count - 1, fitting).tolist()})


def _extent(values: npt.NDArray[np.float64]) -> list[float] | None:
    """Return the lowest and the highest value of the whole training; None if there is none."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return None
    low, high = float(finite.min()), float(finite.max())
    return [low, high] if low < high else [low - 0.5, high + 0.5]


def _metric(group: pd.DataFrame, steps: list[int]) -> dict[str, Any]:
    """Return steps and values of one metric, evenly fewer if there are very many; `at` the steps shown."""
    places = np.unique(np.linspace(0, len(group) - 1, min(len(group), MAX_POINTS)).round().astype(int))
    part = group.iloc[places]
    at = group.drop_duplicates("step", keep="last").set_index("step")["value"].reindex(steps)
    found = {"step": part["step"], "value": part["value"], "at": at}
    return {name: [json_value(value) for value in values] for name, values in found.items()}


def _modes(sounding: Sounding, gauge: str) -> list[float]:
    """Return the two modes of the distribution over sites, if it has two."""
    values = np.asarray(sounding.mean(gauge), np.float64)
    modes = clear_modes(values[np.isfinite(values)])
    return [] if modes is None else [modes.low, modes.high]


def _by_batch(sounding: Sounding, gauge: str) -> list[dict[str, str]]:
    table = sounding.records.pivot(index="site", columns="batch", values=gauge)
    return [packed(row) for row in table.reindex([s.name for s in sounding.sites]).to_numpy(float)]
