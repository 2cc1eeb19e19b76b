"""Charts of networks side by side, each as Vega-Lite with its data: tree and matrix, years, predictors."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fathometer.compare import Clustering
from fathometer.report.page.items import Chart
from fathometer.report.page.networks import hues
from fathometer.report.page.signature_charts import as_spec
from fathometer.report.words import in_words

if TYPE_CHECKING:
    import altair as alt

MOST = 100
"""Networks up to which the matrix is drawn: 10,000 cells."""
_FEW = 12  # so many distances can be read in their cells
_FAINT = "#8899aa"
_WIDTH, _GAP = 0.45, 0.02  # of the tree and of the space before it, as shares of the matrix


def tree_chart(clustering: Clustering, families: Mapping[str, str]) -> Chart:
    """The distance matrix in the order of the tree's leaves, and the tree at its right (Figures 5A and B)."""
    import altair as alt

    count, metric = len(clustering.names), clustering.distances.metric
    start = count - 0.5 + _GAP * count
    highest = float(clustering.linkage[-1, 2]) or 1.0
    cells, branches = matrix_rows(clustering), branch_rows(clustering)
    branches["place"] = start + _WIDTH * count * branches["height"] / highest
    place = alt.X("place:Q", scale=alt.Scale(domain=[-0.5, start + _WIDTH * count * 1.02], nice=False))
    row = alt.Y("row:Q", scale=alt.Scale(domain=[-0.5, count - 0.5], reverse=True, nice=False))
    step = _nice(highest / 3)
    heights = [step * k for k in range(int(highest / step) + 1)]
    place = place.title(f"{metric} distance at which they meet").axis(
        grid=False,
        domain=False,
        titleAnchor="end",
        values=[start + _WIDTH * count * height / highest for height in heights],
        labelExpr=f"format((datum.value - {start}) * {highest / (_WIDTH * count)}, '.2~g')",
    )
    row = row.title(None).axis(
        grid=False, domain=False, ticks=False, labelLimit=150, labelOverlap=False, values=list(range(count)),
        labelFontSize=10 if count <= 40 else 9,
        labelExpr=f"{json.dumps(list(clustering.names))}[datum.value]",
        labelColor=_label_colours(clustering.names, families),
    )  # fmt: skip
    square = alt.Chart(alt.NamedData("cells"))
    shade = alt.Color(
        "distance:Q",
        scale=alt.Scale(scheme="viridis"),
        legend=alt.Legend(title=f"{metric} distance", orient="top", gradientThickness=8),
    )
    tooltip = [alt.Tooltip(f"{name}:N") for name in ("network", "other")]
    layers: list[alt.Chart] = [
        square.mark_rect().encode(
            x=place, x2="end:Q", y=row, y2="below:Q", color=shade,
            tooltip=[*tooltip, alt.Tooltip("distance:Q", format=".4f")],
        ),
        alt.Chart(alt.NamedData("branches")).mark_line(color=_FAINT, strokeWidth=1.2).encode(
            x=place, y=row, detail="merge:N", order="step:O",
            tooltip=[alt.Tooltip("height:Q", format=".4f"), alt.Tooltip("networks:Q")],
        ),
    ]  # fmt: skip
    if count <= _FEW:
        dark = alt.when(f"datum.distance < {0.6 * float(cells['distance'].max())}")
        layers.append(
            square.mark_text(fontSize=9).encode(
                x=alt.X("column:Q"), y=alt.Y("middle:Q"), text=alt.Text("distance:Q", format=".2f"),
                color=dark.then(alt.value("#fff")).otherwise(alt.value("#000")),
            )
        )  # fmt: skip
    chart = alt.layer(*layers).properties(width="container", height=max(120, (15 if count <= 40 else 12) * count))
    text = f"Distances between {count} networks as a matrix, and the tree that puts near ones together"
    return Chart(as_spec(chart, text), {"cells": cells, "branches": branches})


def matrix_rows(clustering: Clustering) -> pd.DataFrame:
    """A row for each cell of the matrix: both networks, their distance, and where it lies."""
    names, matrix = clustering.names, clustering.ordered.to_numpy()
    row, column = (part.ravel() for part in np.indices(matrix.shape))
    return pd.DataFrame(
        {
            "network": [names[place] for place in row],
            "other": [names[place] for place in column],
            "distance": matrix.ravel(),
            "place": column - 0.5,
            "end": column + 0.5,
            "row": row - 0.5,
            "below": row + 0.5,
            "column": column,
            "middle": row,
        }
    )


def branch_rows(clustering: Clustering) -> pd.DataFrame:
    """Four rows for each merge, the corners of its bracket: the row of the matrix and the height."""
    from scipy.cluster.hierarchy import dendrogram

    drawn = dendrogram(clustering.linkage, no_plot=True)
    sizes = {round(float(height), 12): int(size) for *_, height, size in clustering.linkage}
    rows = [
        (merge, step, (across - 5) / 10, height, sizes.get(round(float(heights[1]), 12), 0))
        for merge, (places, heights) in enumerate(zip(drawn["icoord"], drawn["dcoord"], strict=True))
        for step, (across, height) in enumerate(zip(places, heights, strict=True))
    ]
    return pd.DataFrame(rows, columns=["merge", "step", "row", "height", "networks"])


def years_chart(numbers: pd.DataFrame, facts: pd.DataFrame, gauge: str) -> Chart:
    """Min, median and max of each network against its year (Figure 3)."""
    import altair as alt

    rows = years_rows(numbers, facts)
    colour = _family_colour(rows["family"])
    base = alt.Chart(alt.NamedData("networks"))
    when = alt.X("place:Q", title="year", axis=alt.Axis(format="d", tickMinStep=1, grid=False)).scale(
        zero=False, nice=False, padding=12
    )
    height = alt.Y("median:Q", title=f"{in_words(gauge)}: min, median, max", scale=alt.Scale(zero=False))
    tooltip = [alt.Tooltip("network:N"), alt.Tooltip("family:N"), alt.Tooltip("year:Q", format="d")]
    tooltip += [alt.Tooltip(f"{name}:Q", format=".4f") for name in ("min", "median", "max")]
    ends = base.mark_rule(strokeWidth=2, opacity=0.6).encode(x=when, y=alt.Y("min:Q"), y2="max:Q", color=colour)
    points = base.mark_point(filled=True, size=60, opacity=1).encode(x=when, y=height, color=colour, tooltip=tooltip)
    chart = alt.layer(ends, points).properties(width="container", height=280)
    text = f"{in_words(gauge)} of {len(rows)} networks by year: from min to max, with the median"
    return Chart(as_spec(chart, text), {"networks": rows})


def years_rows(numbers: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """The networks whose year is known; those of one year stand side by side within it (`place`)."""
    table = numbers[["min", "median", "max"]].join(facts[["family", "year"]], how="inner")
    table = table[np.isfinite(table["year"].to_numpy(float))].sort_values(["year", "median"])
    table["family"] = table["family"].fillna("–")
    within = table.groupby("year")
    width = max(int(within.size().max()), 2)
    middle = (within["year"].transform("size") - 1) / 2
    table["place"] = table["year"] + 0.7 * (within.cumcount() - middle) / width
    return table.reset_index(names="network")


def predictor_charts(
    best: pd.DataFrame, numbers: pd.DataFrame, facts: pd.DataFrame, members: Mapping[str, str]
) -> list[Chart]:
    """Accuracy against the best statistic and the best characteristic of each family (Figure 4)."""
    return [_predictor(row, numbers, facts, members) for row in best.to_dict("records")]


def _predictor(
    row: Mapping[Any, Any], numbers: pd.DataFrame, facts: pd.DataFrame, members: Mapping[str, str]
) -> Chart:
    import altair as alt

    name, family = str(row["predictor"]), str(row["family"])
    values = (numbers if row["kind"] == "signature" else facts)[name]
    table = pd.DataFrame({"value": values, "accuracy": facts["accuracy"]}).dropna()
    table = table[[members.get(str(network)) == family for network in table.index]]
    ends = table["value"].agg(["min", "max"]).to_numpy(float)
    middle, level = float(table["value"].mean()), float(table["accuracy"].mean())
    line = pd.DataFrame({"value": ends, "accuracy": level + float(row["slope"]) * (ends - middle)})
    x = alt.X("value:Q", title=f"{family}: {in_words(name)}", scale=alt.Scale(zero=False), axis=alt.Axis(format="~s"))
    y = alt.Y("accuracy:Q", title="accuracy", scale=alt.Scale(zero=False))
    points = alt.Chart(alt.NamedData("networks")).mark_point(filled=True, size=60, opacity=1, color="#0072b2")
    fit = alt.Chart(alt.NamedData("line")).mark_line(color="#d55e00", strokeWidth=1.2).encode(x=x, y=y)
    tooltip = [alt.Tooltip("network:N"), alt.Tooltip("value:Q", title=in_words(name)), alt.Tooltip("accuracy:Q")]
    chart = alt.layer(fit, points.encode(x=x, y=y, tooltip=tooltip)).properties(width="container", height=170)
    caption = (
        f"R² {row['r2']:.2f}; left out {row['r2_left_out']:.2f}; chance {row['chance']:.2f}; "
        f"{row['members']} networks"
    )
    text = f"Accuracy of the networks of {family} against {in_words(name)}"
    return Chart(
        as_spec(chart, text), {"networks": table.reset_index(names="network"), "line": line}, caption, half=True
    )


def _family_colour(families: pd.Series[str]) -> alt.Color:
    import altair as alt

    colours = hues(sorted(families.unique()))
    return alt.Color(
        "family:N",
        scale=alt.Scale(domain=list(colours), range=list(colours.values())),
        legend=alt.Legend(title=None, orient="bottom", columns=3, labelLimit=100),
    )


def _label_colours(names: tuple[str, ...], families: Mapping[str, str]) -> dict[str, Any]:
    """Names in the colour of their family."""
    colours = hues(sorted(set(families.values())))
    places = {
        family: [place for place, name in enumerate(names) if families.get(name) == family] for family in colours
    }
    return {
        "condition": [
            {"test": f"indexof({places[family]}, datum.value) >= 0", "value": colour}
            for family, colour in colours.items()
        ],
        "value": _FAINT,
    }


def _nice(step: float) -> float:
    """The next larger of 1, 2 and 5 times a power of ten."""
    ten = 10.0 ** math.floor(math.log10(step))
    return next(ten * k for k in (1, 2, 5, 10) if ten * k >= step * 0.999)
