"""One sounding as a page: its signature, its strip, its distribution, its table, and where it came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fathometer.report.blocks import blocks_of
from fathometer.report.page.encoding import column, packed
from fathometer.report.page.items import Facts, Page, Section, View
from fathometer.report.page.signature_charts import sounding_charts
from fathometer.report.words import what_stands_out
from fathometer.results.provenance import Provenance
from fathometer.results.sounding import Sounding


def sounding_page(sounding: Sounding, title: str | None = None) -> Page:
    """The report of one sounding."""
    facts = sounding.provenance
    name = title or str(facts.model.get("name", "a network"))
    batches = sounding.records["batch"].nunique()
    what = "residual blocks" if "path" in facts.settings else "activation sites"
    lead = (
        f"{len(sounding.sites)} {what} on {facts.data.get('name', 'data')}, "
        f"{batches} {'batch' if batches == 1 else 'batches'} of {facts.settings.get('samples', '?')} samples"
    )
    view = View("sounding", sounding_data(sounding, name, batches=True), sounding_charts())
    return Page(name, lead, (Section("", (view,)), Section("Where it came from", (provenance_facts(facts),))))


def sounding_data(sounding: Sounding, name: str, *, batches: bool = False) -> dict[str, Any]:
    """Everything that the view shows of a sounding, as plain values.

    Args:
        sounding: the result.
        name: what to call it on the page.
        batches: also each batch's values, not only their mean and standard deviation.
    """
    gauges, blocks = sounding.gauges, blocks_of(sounding.sites)
    data: dict[str, Any] = {
        "name": name,
        "gauges": gauges,
        "sites": {
            **site_columns(sounding),
            "block": [block.name for block in blocks for _ in range(len(block))],
        },
        "blocks": [[block.label, block.start, block.stop] for block in blocks],
        "mean": {gauge: packed(sounding.mean(gauge)) for gauge in gauges},
        "std": {gauge: packed(sounding.std(gauge)) for gauge in gauges},
        "words": {gauge: what_stands_out(sounding, gauge) for gauge in gauges},
    }
    if batches:
        data["batches"] = {gauge: _by_batch(sounding, gauge) for gauge in gauges}
    return data


def site_columns(sounding: Sounding) -> dict[str, list[Any]]:
    """The sites in order of depth: name, operator, call, samples and features, a column each."""
    order = [site.name for site in sounding.sites]
    sizes = sounding.records.drop_duplicates("site").set_index("site").reindex(order)
    return {
        "site": order,
        "operator": [site.operator for site in sounding.sites],
        "call": [site.call for site in sounding.sites],
        "samples": column(sizes["n"]),
        "features": column(sizes["d"]),
    }


def provenance_facts(facts: Provenance) -> Facts:
    """The provenance, name by name."""
    pairs = {
        **_flat("network", facts.model),
        **_flat("data", facts.data),
        **_flat("setting", facts.settings),
        **_flat("version", facts.versions),
        "device": facts.device,
        "date": facts.date,
        "seconds": str(facts.seconds),
    }
    return Facts("Network, data, settings, versions", pairs)


def _flat(kind: str, values: Mapping[str, Any]) -> dict[str, str]:
    return {
        f"{kind}: {name}": value if isinstance(value, str) else json.dumps(value, default=str)
        for name, value in values.items()
        if value is not None
    }


def _by_batch(sounding: Sounding, gauge: str) -> list[dict[str, str]]:
    order = [site.name for site in sounding.sites]
    table = sounding.records.pivot(index="site", columns="batch", values=gauge).reindex(order)
    return [packed(row) for row in table.to_numpy(float)]
