"""A similarity map as a chart, and the page of a map of two networks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import altair as alt

from fathometer.capture import Site
from fathometer.report.blocks import site_labels
from fathometer.report.page.charts import TEXT, as_spec, data
from fathometer.report.page.items import Chart, Page, Section, Table
from fathometer.report.tables import map_sites, map_table, missing_cells
from fathometer.results.similarity import SimilarityMap
from fathometer.results.sounding import Sounding

_MAX_SVG = 10_000  # cells; more are drawn on a canvas
_WIDTH, _MIN_HEIGHT, _MAX_HEIGHT = 700, 160, 700  # pixels
_NAME = 11  # pixels that a name takes


def map_chart(result: Sounding | SimilarityMap) -> Chart:
    """Draw CKA of every site with every other, depth from below and from the left."""
    cells, (down, across) = map_table(result), map_sites(result)
    height = min(max(13 * len(down), _MIN_HEIGHT), _MAX_HEIGHT)
    names = [json.dumps([site.name for site in sites]) for sites in (down, across)]
    titles = result.names if isinstance(result, SimilarityMap) else ("site", "other site")
    scale = alt.Scale(scheme="cividis", domain=[min(0.0, float(cells["cka"].min())), 1])
    legend = alt.Legend(title="CKA", type="gradient", orient="top", gradientThickness=8)
    chart = (
        data("cells")
        .transform_filter("isValid(datum.cka)")
        .transform_calculate(
            site=f"{names[0]}[datum.row]",
            other=f"{names[1]}[datum.column]",
            left="datum.column - 0.5",
            right="datum.column + 0.52",  # a little too far, or the page would shine through between cells
            below="datum.row - 0.5",
            above="datum.row + 0.52",
        )
        .mark_rect()
        .encode(
            x=alt.X("left:Q", **_axis(across, _WIDTH, titles[1], labelAngle=-90)),
            x2="right:Q",
            y=alt.Y("below:Q", **_axis(down, height, titles[0])),
            y2="above:Q",
            color=alt.Color("cka:Q", scale=scale, legend=legend),
            tooltip=[
                alt.Tooltip("site:N", title=titles[0]),
                alt.Tooltip("other:N", title=titles[1]),
                alt.Tooltip("cka:Q", title="CKA", **TEXT),
            ],
        )
    )
    text = f"Similarity (CKA) of {len(down)} sites with {len(across)} sites as a heat map"
    spec = as_spec(chart, text, height)
    if len(cells) > _MAX_SVG:
        spec["usermeta"] = {"renderer": "canvas"}
    caption = "Unbiased linear CKA of the outputs: 1 if they are equal up to rotation and scale."
    return Chart(spec, {"cells": cells}, f"{caption} {missing_cells(result)}".rstrip())


def _axis(sites: Sequence[Site], pixels: int, title: str, **settings: Any) -> dict[str, Any]:
    labels = site_labels(sites, _NAME * len(sites) / pixels)
    places = list(labels)
    axis = alt.Axis(
        title=title if title not in ("site", "other site") else None,
        grid=False,
        domain=False,
        ticks=False,
        labelLimit=120,
        labelFontSize=9,
        labelOverlap=True,
        values=places,
        labelExpr=f"{json.dumps(list(labels.values()))}[indexof({places}, datum.value)]",
        **settings,
    )
    return {"axis": axis, "scale": alt.Scale(domain=[-0.5, len(sites) - 0.5], nice=False)}


def map_page(result: SimilarityMap, title: str | None = None) -> Page:
    """Return the report of a map of two networks."""
    from fathometer.report.page.sounding import PROVENANCE, provenance_facts

    facts = result.provenance
    lead = (
        f"{len(result.first)} × {len(result.second)} sites on {facts.data.get('name', 'data')}, "
        f"{facts.data.get('samples_measured', '?')} samples{result.outcome and f'; {result.outcome}'}"
    )
    nearest = Table(result.nearest.reset_index(), f"The most similar site of {result.names[1]}")
    sections = (
        Section("", (map_chart(result),)),
        Section(f"Sites of {result.names[0]}", (nearest,)),
        Section(PROVENANCE, (provenance_facts(facts),)),
    )
    return Page(title or " and ".join(result.names), lead, sections)
