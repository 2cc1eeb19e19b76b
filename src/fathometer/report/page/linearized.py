"""The page of a linearized network."""

from __future__ import annotations

import altair as alt

from fathometer.report.page.charts import ACCENT, TEXT, WARM, as_spec, data
from fathometer.report.page.items import Chart, Page, Section, Table
from fathometer.report.tables import curve_table, site_cost_table
from fathometer.results.linearized import Linearized

_WHOLE = alt.Axis(tickMinStep=1, format="d")  # counts and positions are whole numbers


def linearized_page(result: Linearized, title: str | None = None) -> Page:
    """Return the report of a linearized network."""
    from fathometer.report.page.sounding import PROVENANCE, provenance_facts

    facts = result.provenance
    criterion = facts.settings.get("criterion")
    chosen = f"; chosen by {criterion}" if criterion else ""
    measured_on = facts.settings.get("test", facts.data.get("name", "data"))
    lead = f"{result.outcome} ({measured_on}){chosen}"
    sections = (
        Section("", (_curve(result), _costs(result))),
        Section("Steps", (Table(result.curve, "The network after each step"),)),
        Section("Sites", (Table(result.table.reset_index(), "Step 0: the site was kept"),)),
        Section(PROVENANCE, (provenance_facts(facts),)),
    )
    return Page(title or f"{facts.model.get('name', 'a network')}, linearized", lead, sections)


def _curve(result: Linearized) -> Chart:
    table = curve_table(result)
    name = str(table["measure"].iloc[0])
    chart = (
        data("curve")
        .mark_line(point=True, color=ACCENT)
        .encode(
            x=alt.X("replaced:Q", title=f"sites replaced, of {len(result.sites)}", axis=_WHOLE),
            y=alt.Y("value:Q", title=name, scale=alt.Scale(zero=False)),
            tooltip=["replaced:Q", "site:N", alt.Tooltip("value:Q", title=name, **TEXT)],
        )
    )
    spec = as_spec(chart, f"{name} as sites are replaced by lines", 240)
    return Chart(spec, {"curve": table}, "Each point is the network after one more step.", half=True)


def _costs(result: Linearized) -> Chart:
    table = site_cost_table(result)
    name = str(table["measure"].iloc[0])
    scale = alt.Scale(type="symlog", constant=max(float(table["cost"].abs().min()), 1e-9))
    colour = alt.when("datum.replaced").then(alt.value(WARM)).otherwise(alt.value(ACCENT))
    chart = (
        data("sites")
        .transform_filter("isValid(datum.cost)")
        .mark_point(filled=True, size=45)
        .encode(
            x=alt.X("order:Q", title="site, in order of depth", axis=_WHOLE),
            y=alt.Y("cost:Q", title=name, scale=scale),
            color=colour,
            tooltip=["site:N", alt.Tooltip("cost:Q", title=name, **TEXT), alt.Tooltip("r2:Q", **TEXT)],
        )
    )
    spec = as_spec(chart, f"{name} of each site in order of depth", 240)
    return Chart(spec, {"sites": table}, "What it costs to replace one site alone.", half=True)
