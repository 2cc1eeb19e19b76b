"""The distances of networks as a matrix, and the tree that puts near ones together, in one chart."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from fathometer.compare import Clustering
from fathometer.report.page.colours import FAINT
from fathometer.report.page.items import Chart
from fathometer.report.page.networks import hues
from fathometer.report.page.vega import TEXT, as_spec

MOST = 100
"""Networks up to which the matrix is drawn: 10,000 cells."""
_FEW = 12  # so many distances can be read in their cells
_MANY = 40  # from then on rows are lower
_WIDTH, _GAP = 0.45, 0.02  # of the tree and of the space before it, as shares of the matrix


def tree_chart(clustering: Clustering, families: Mapping[str, str]) -> Chart:
    """The distance matrix in the order of the tree's leaves, and the tree at its right (Figures 5A and B)."""
    import altair as alt

    count, metric = len(clustering.names), clustering.distances.metric
    cells, branches = matrix_rows(clustering), branch_rows(clustering)
    highest = float(clustering.linkage[-1, 2]) or 1.0
    start, width = count - 0.5 + _GAP * count, _WIDTH * count
    branches["place"] = start + width * branches["height"] / highest
    across = _across(start, width, highest, f"{metric} distance at which they meet")
    down = _down(clustering.names, families)
    square = alt.Chart(alt.NamedData("cells"))
    shade = alt.Color(
        "distance:Q",
        scale=alt.Scale(scheme="viridis"),
        legend=alt.Legend(title=f"{metric} distance", orient="top", gradientThickness=8),
    )
    tooltip = [alt.Tooltip(f"{name}:N") for name in ("network", "other")]
    layers = [
        square.mark_rect().encode(
            x=alt.X("place:Q", **across),
            x2="end:Q",
            y=alt.Y("row:Q", **down),
            y2="below:Q",
            color=shade,
            tooltip=[*tooltip, alt.Tooltip("distance:Q", **TEXT)],
        ),
        alt.Chart(alt.NamedData("branches"))
        .mark_line(color=FAINT, strokeWidth=1.2)
        .encode(
            x=alt.X("place:Q", **across),
            y=alt.Y("row:Q", **down),
            detail="merge:N",
            order="step:O",
            tooltip=alt.Tooltip("height:Q", **TEXT),
        ),
    ]
    if count <= _FEW:
        dark = alt.when(f"datum.distance < {0.6 * float(cells['distance'].max())}")
        numbers = square.mark_text(fontSize=9).encode(
            x=alt.X("column:Q", **across),
            y=alt.Y("middle:Q", **down),
            text=alt.Text("distance:Q", format=".2f"),
            color=dark.then(alt.value("white")).otherwise(alt.value("black")),
        )
        layers.append(numbers)
    height = max(120, (15 if count <= _MANY else 12) * count)
    chart = alt.layer(*layers).properties(width="container", height=height)
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
    rows = [
        (merge, step, (across - 5) / 10, height)
        for merge, (places, heights) in enumerate(zip(drawn["icoord"], drawn["dcoord"], strict=True))
        for step, (across, height) in enumerate(zip(places, heights, strict=True))
    ]
    return pd.DataFrame(rows, columns=["merge", "step", "row", "height"])


def _across(start: float, width: float, highest: float, title: str) -> dict[str, Any]:
    """The matrix needs no axis, its columns are in the order of its rows; the tree has one of heights."""
    import altair as alt

    step = _nice(highest / 5)
    axis = alt.Axis(
        grid=False,
        domain=False,
        titleAnchor="end",
        values=[start + width * step * k / highest for k in range(int(highest / step + 1e-9) + 1)],
        labelExpr=f"format((datum.value - {start}) * {highest / width}, '.2~g')",
    )
    scale = alt.Scale(domain=[-0.5, start + width * 1.02], nice=False)
    return {"title": title, "scale": scale, "axis": axis}


def _down(names: tuple[str, ...], families: Mapping[str, str]) -> dict[str, Any]:
    """A name for each row, in the colour of its family, where there is any."""
    import altair as alt

    colours = hues(sorted(set(families.values())))
    rows = {f: [row for row, name in enumerate(names) if families.get(name) == f] for f in colours}
    tests = [
        {"test": f"indexof({rows[family]}, datum.value) >= 0", "value": colour}
        for family, colour in colours.items()
    ]
    tinted: dict[str, Any] = {"labelColor": {"condition": tests, "value": FAINT}} if tests else {}
    axis = alt.Axis(
        grid=False,
        domain=False,
        ticks=False,
        labelLimit=150,
        labelOverlap=False,
        labelFontSize=10 if len(names) <= _MANY else 9,
        values=list(range(len(names))),
        labelExpr=f"{json.dumps(names)}[datum.value]",
        **tinted,
    )
    scale = alt.Scale(domain=[-0.5, len(names) - 0.5], reverse=True, nice=False)
    return {"title": None, "scale": scale, "axis": axis}


def _nice(step: float) -> float:
    """The next larger of 1, 2 and 5 times a power of ten."""
    ten = 10.0 ** math.floor(math.log10(step))
    return next(ten * k for k in (1, 2, 5, 10) if ten * k >= step * 0.999)
