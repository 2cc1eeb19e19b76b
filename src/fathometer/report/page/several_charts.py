"""Networks over the years, and what foretells their accuracy: charts as Vega-Lite, each with its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fathometer.report.numbers import in_words
from fathometer.report.page.colours import ACCENT, WARM
from fathometer.report.page.items import Chart
from fathometer.report.page.networks import hues
from fathometer.report.page.vega import TEXT, as_spec

if TYPE_CHECKING:
    import altair as alt


def years_chart(numbers: pd.DataFrame, facts: pd.DataFrame, gauge: str) -> Chart:
    """Min, median and max of each network against its year (Figure 3)."""
    import altair as alt

    rows = years_rows(numbers, facts)
    colour = _family_colour(rows["family"])
    base = alt.Chart(alt.NamedData("networks"))
    first, last = int(rows["year"].min()), int(rows["year"].max())
    when = alt.X(
        "place:Q",
        title="year",
        axis=alt.Axis(format="d", values=list(range(first, last + 1, 1 + (last - first) // 12)), grid=False),
        scale=alt.Scale(domain=[first - 0.5, last + 0.5], nice=False),
    )
    height = alt.Y("median:Q", title=f"{in_words(gauge)}: min, median, max", scale=alt.Scale(zero=False))
    tooltip = [alt.Tooltip("network:N"), alt.Tooltip("family:N"), alt.Tooltip("year:Q", format="d")]
    tooltip += [alt.Tooltip(f"{name}:Q", **TEXT) for name in ("min", "median", "max")]
    ends = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=when, y=alt.Y("min:Q"), y2="max:Q", color=colour
    )
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=when, y=height, color=colour, tooltip=tooltip
    )
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
    x = alt.X(
        "value:Q",
        title=f"{family}: {in_words(name)}",
        scale=alt.Scale(zero=False),
        axis=alt.Axis(format="~s" if ends[1] >= 1000 else "~g"),  # 270k, but not 140m for 0.14
    )
    y = alt.Y("accuracy:Q", title="accuracy", scale=alt.Scale(zero=False))
    points = alt.Chart(alt.NamedData("networks")).mark_point(filled=True, size=60, opacity=1, color=ACCENT)
    fit = alt.Chart(alt.NamedData("line")).mark_line(color=WARM, strokeWidth=1.2).encode(x=x, y=y)
    tooltip = [
        alt.Tooltip("network:N"),
        alt.Tooltip("value:Q", title=in_words(name), **TEXT),
        alt.Tooltip("accuracy:Q", **TEXT),
    ]
    chart = alt.layer(fit, points.encode(x=x, y=y, tooltip=tooltip)).properties(width="container", height=170)
    caption = (
        f"R² {row['r2']:.2f}; left out {row['r2_left_out']:.2f}; chance {row['chance']:.2f}; "
        f"{row['members']} networks"
    )
    text = f"Accuracy of the networks of {family} against {in_words(name)}"
    return Chart(
        as_spec(chart, text),
        {"networks": table.reset_index(names="network"), "line": line},
        caption,
        half=True,
    )


def _family_colour(families: pd.Series[str]) -> alt.Color:
    import altair as alt

    colours = hues(sorted(families.unique()))
    return alt.Color(
        "family:N",
        scale=alt.Scale(domain=list(colours), range=list(colours.values())),
        legend=alt.Legend(title=None, orient="bottom", columns=3, labelLimit=100),
    )
