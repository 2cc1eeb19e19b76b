"""Transformers by layer as charts: MLP, attention and activations as lines, every gauge as a heat map."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from fathometer.compare.soundings import Soundings
from fathometer.gauges.registry import MAX_TRIMMED_GAP
from fathometer.report.numbers import gauge_label, number
from fathometer.report.page.charts import TEXT, WHOLE_LABELS, as_spec, category_colours, data
from fathometer.report.page.items import Chart, Item, Paragraph
from fathometer.report.tables import gauge_table, layer_panels, layer_table
from fathometer.results.sounding import Sounding

_SUM = {False: "alone", True: "with residual"}
_DASHES = alt.Scale(domain=list(_SUM.values()), range=[[1, 0], [5, 3]])


def layer_items(soundings: Sounding | Soundings) -> tuple[Item, ...]:
    """Return what a page shows of soundings that `has_layers`; of one network also every gauge by layer."""
    table = layer_table(soundings)
    words = "R² of the parts, held out, alone and with the residual sum. "
    if "affinity" in set(table["gauge"]):
        words = f"Affinity score of the activations, and {words}"
    if table["trimmed"].notna().any():
        words += (
            "A hollow mark is R² without the largest samples, where it differs by more than "
            f"{MAX_TRIMMED_GAP}: there a few tokens decide R². "
        )
    items: tuple[Item, ...] = (
        Paragraph(f"{words}Click a name to see its lines only."),
        *layer_charts(table),
    )
    if not isinstance(soundings, Sounding):
        return items
    ranges = Paragraph(
        "Every gauge by layer. Each row has colours of its own, dark at its lowest value and light at its "
        "highest, which are written beside it."
    )
    return (*items, ranges, *gauge_charts(gauge_table(soundings)))


def layer_charts(table: pd.DataFrame) -> list[Chart]:
    """Draw each of the `layer_panels` of a table, side by side."""
    line, panels = layer_panels(table)
    colours = category_colours(table[line])
    charts = []
    for panel, rows in panels.items():
        drawn = list(dict.fromkeys(rows[line]))
        gauge = gauge_label(str(rows["gauge"].iloc[0]))
        rows = rows.assign(
            residual=rows["residual"].map(_SUM),
            low=rows["mean"] - rows["std"],
            high=rows["mean"] + rows["std"],
        )
        chosen = alt.selection_point(fields=[line], bind="legend")
        top: Any = {"orient": "top", "title": None}
        place: dict[str, Any] = {
            "x": alt.X(
                "layer:Q", axis=alt.Axis(grid=False, labelExpr=WHOLE_LABELS), scale=alt.Scale(nice=False)
            ),
            "color": alt.Color(
                f"{line}:N",
                scale=alt.Scale(domain=drawn, range=[colours[name] for name in drawn]),
                legend=alt.Legend(**top),
            ),
            "opacity": alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12)),
        }
        height = alt.Y("mean:Q", title=gauge, scale=alt.Scale(zero=False))
        legend = alt.Legend(**top) if rows["residual"].nunique() > 1 else None
        dash = alt.StrokeDash("residual:N", scale=_DASHES, legend=legend)
        tips = [alt.Tooltip(f"{name}:N") for name in ("network", "series", "layer")]
        tips.append(alt.Tooltip("mean:Q", title=gauge, **TEXT))
        far = [alt.Tooltip("trimmed:Q", title="r2 trimmed", **TEXT)]
        every, trimmed = data("layers").encode(**place), data("trimmed").encode(**place)
        chart = alt.layer(  # the legend takes clicks only if the selection is in the first layer
            every.mark_line(strokeWidth=1.6).encode(y=height, strokeDash=dash).add_params(chosen),
            every.mark_rule(strokeWidth=1, aria=False).encode(y="low:Q", y2="high:Q"),
            trimmed.mark_rule(strokeDash=[2, 2], aria=False).encode(y="mean:Q", y2="trimmed:Q"),
            trimmed.mark_point(size=26, strokeWidth=1.2).encode(y="trimmed:Q", tooltip=tips + far),
            every.mark_point(filled=True, size=26).encode(y="mean:Q", tooltip=tips),
        )
        text = f"{gauge} by layer, a line for each {line}"
        far_rows = rows.dropna(subset=["trimmed"])
        title = alt.Title(panel if line == "network" else "", anchor="start")
        spec = as_spec(chart.properties(title=title), text, 240)
        charts.append(Chart(spec, {"layers": rows, "trimmed": far_rows}, half=True))
    return charts


def gauge_charts(table: pd.DataFrame) -> list[Chart]:
    """Draw the heat map of a `gauge_table`, a chart for each series."""
    charts = []
    for series, rows in table.groupby("series", sort=False):
        ranges = zip(rows["gauge"], rows["low"], rows["high"], strict=True)
        labels = [f"{gauge_label(gauge)}, {number(low)} … {number(high)}" for gauge, low, high in ranges]
        names = list(dict.fromkeys(labels))
        chart = (
            data("cells")
            .transform_filter("isValid(datum.share)")
            .mark_rect()
            .encode(
                x=alt.X("layer:O", axis=alt.Axis(labelAngle=0, labelOverlap=True, ticks=False)),
                y=alt.Y("label:N", sort=names, axis=alt.Axis(title=None, labelLimit=260, ticks=False)),
                color=alt.Color("share:Q", scale=alt.Scale(scheme="cividis", domain=[0, 1]), legend=None),
                tooltip=[
                    alt.Tooltip("layer:O"),
                    alt.Tooltip("label:N", title="gauge, range"),
                    alt.Tooltip("mean:Q", title="value", **TEXT),
                ],
            )
        )
        text = f"Every gauge at {series} by layer as a heat map"
        title = alt.Title(str(series), anchor="start")
        spec = as_spec(chart.properties(title=title), text, 15 * len(names))
        charts.append(Chart(spec, {"cells": rows.assign(label=labels)}, half=True))
    return charts
