"""Charts of networks side by side: over the years, predictors of accuracy, distances with their tree."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from fathometer.compare import Clustering
from fathometer.report.numbers import gauge_label
from fathometer.report.page.charts import ACCENT, FAINT, TEXT, WARM, as_spec, category_colours, data
from fathometer.report.page.items import Chart
from fathometer.report.tables import branch_table, matrix_table

MAX_MATRIX = 100
"""Networks up to which the matrix is drawn: 10,000 cells."""


def years_chart(years: pd.DataFrame, gauge: str) -> Chart:
    """Draw min, median and max of each network against its year (Figure 3), from a `year_table`."""
    rows = years.reset_index().assign(family=years["family"].replace("", "–").to_numpy())
    colours = category_colours(sorted(rows["family"].unique()))
    first, last = int(rows["year"].min()), int(rows["year"].max())
    ticks = list(range(first, last + 1, 1 + (last - first) // 12))
    when = alt.X(
        "place:Q",
        title="year",
        axis=alt.Axis(format="d", values=ticks, grid=False),
        scale=alt.Scale(domain=[first - 0.5, last + 0.5], nice=False),
    )
    colour = alt.Color(
        "family:N",
        scale=alt.Scale(domain=list(colours), range=list(colours.values())),
        legend=alt.Legend(title=None, orient="bottom", columns=3, labelLimit=100),
    )
    height = alt.Y("median:Q", title=f"{gauge_label(gauge)}: min, median, max", scale=alt.Scale(zero=False))
    tips = [alt.Tooltip("network:N"), alt.Tooltip("family:N"), alt.Tooltip("year:Q", format="d")]
    tips += [alt.Tooltip(f"{name}:Q", **TEXT) for name in ("min", "median", "max")]
    base = data("networks").encode(x=when, color=colour)
    chart = alt.layer(
        base.mark_rule(strokeWidth=2, opacity=0.6).encode(y=alt.Y("min:Q"), y2="max:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(y=height, tooltip=tips),
    )
    text = f"{gauge_label(gauge)} of {len(rows)} networks by year: from min to max, with the median"
    return Chart(as_spec(chart, text, 280), {"networks": rows})


def predictor_chart(row: Mapping[str, Any], table: pd.DataFrame) -> Chart:
    """Draw accuracy against the predictor of one row of `predictor_table` (Figure 4)."""
    name, family = gauge_label(str(row["predictor"])), str(row["family"])
    free = alt.Scale(zero=False)
    axis = alt.Axis(format="~s" if table["value"].max() >= 1000 else "~g")  # 270k, but not 140m for 0.14
    x = alt.X("value:Q", title=f"{family}: {name}", scale=free, axis=axis)
    y: Any = {"title": "accuracy", "scale": free}
    tips = [
        alt.Tooltip("network:N"),
        alt.Tooltip("value:Q", title=name, **TEXT),
        alt.Tooltip("target:Q", title="accuracy", **TEXT),
    ]
    chart = alt.layer(
        data("networks").mark_line(color=WARM, strokeWidth=1.2).encode(x=x, y=alt.Y("fit:Q", **y)),
        data("networks")
        .mark_point(filled=True, size=60, opacity=1, color=ACCENT)
        .encode(x=x, y=alt.Y("target:Q", **y), tooltip=tips),
    )
    caption = (
        f"R² {row['r2']:.2f}; left out {row['r2_left_out']:.2f}; p {row['p']:.2f}; {row['members']} networks"
    )
    text = f"Accuracy of the networks of {family} against {name}"
    return Chart(as_spec(chart, text, 170), {"networks": table.reset_index()}, caption, half=True)


def tree_chart(clustering: Clustering, families: Mapping[str, str]) -> Chart:
    """Draw the distance matrix in the order of the tree's leaves, and the tree at its right (Figure 5)."""
    names, metric = clustering.names, clustering.distances.metric
    count = len(names)
    cells, branches = matrix_table(clustering), branch_table(clustering)
    highest = float(branches["height"].max()) or 1.0
    start, width = 1.02 * count - 0.5, 0.45 * count  # of the tree, in columns of the matrix
    branches["place"] = start + width * branches["height"] / highest
    cells = cells.assign(left=cells["column"] - 0.5, right=cells["column"] + 0.5)
    cells = cells.assign(above=cells["row"] - 0.5, below=cells["row"] + 0.5)
    step = _round_up(highest / 5)
    heights = alt.Axis(  # of the tree; the matrix needs none, its columns are in the order of its rows
        grid=False,
        domain=False,
        titleAnchor="end",
        values=[start + width * step * k / highest for k in range(int(highest / step + 1e-9) + 1)],
        labelExpr=f"format((datum.value - {start}) * {highest / width}, '.2~g')",
    )
    across: Any = {
        "title": f"{metric} distance at which they are joined",
        "scale": alt.Scale(domain=[-0.5, start + width * 1.02], nice=False),
        "axis": heights,
    }
    down: Any = {
        "title": None,
        "scale": alt.Scale(domain=[-0.5, count - 0.5], reverse=True, nice=False),
        "axis": _names(names, families),
    }
    legend = alt.Legend(title=f"{metric} distance", orient="top", gradientThickness=8)
    layers: list[alt.Chart] = [
        data("cells")
        .mark_rect()
        .encode(
            x=alt.X("left:Q", **across),
            x2="right:Q",
            y=alt.Y("above:Q", **down),
            y2="below:Q",
            color=alt.Color("distance:Q", scale=alt.Scale(scheme="cividis"), legend=legend),
            tooltip=["network:N", "other:N", alt.Tooltip("distance:Q", **TEXT)],
        ),
        data("branches")
        .mark_line(color=FAINT, strokeWidth=1.2)
        .encode(
            x=alt.X("place:Q", **across),
            y=alt.Y("row:Q", **down),
            detail="merge:N",
            order="step:O",
            tooltip=alt.Tooltip("height:Q", **TEXT),
        ),
    ]
    if count <= 12:  # the distances can be read in their cells
        dark = alt.when(f"datum.distance < {0.6 * float(cells['distance'].max())}")
        layers.append(
            data("cells")
            .mark_text(fontSize=9)
            .encode(
                x=alt.X("column:Q", **across),
                y=alt.Y("row:Q", **down),
                text=alt.Text("distance:Q", format=".2f"),
                color=dark.then(alt.value("white")).otherwise(alt.value("black")),
            )
        )
    text = f"Distances between {count} networks as a matrix, and the tree that joins similar ones"
    spec = as_spec(alt.layer(*layers), text, max(120, (15 if count <= 40 else 12) * count))
    return Chart(spec, {"cells": cells, "branches": branches})


def _names(names: tuple[str, ...], families: Mapping[str, str]) -> alt.Axis:
    """Return an axis with a name for each row, in the colour of its family."""
    colours = category_colours(sorted(set(families.values())))
    rows = {f: [row for row, name in enumerate(names) if families.get(name) == f] for f in colours}
    tests = [
        {"test": f"indexof({rows[family]}, datum.value) >= 0", "value": colour}
        for family, colour in colours.items()
    ]
    tinted: dict[str, Any] = {"labelColor": {"condition": tests, "value": FAINT}} if tests else {}
    return alt.Axis(
        grid=False,
        domain=False,
        ticks=False,
        labelLimit=150,
        labelOverlap=False,
        labelFontSize=10 if len(names) <= 40 else 9,
        values=list(range(len(names))),
        labelExpr=f"{json.dumps(names)}[datum.value]",
        **tinted,
    )


def _round_up(step: float) -> float:
    """Return the next larger of 1, 2 and 5 times a power of ten."""
    ten = 10.0 ** math.floor(math.log10(step))
    return next(ten * k for k in (1, 2, 5, 10) if ten * k >= step * 0.999)
