"""Charts along depth, as Vega-Lite. The view gives the data: `sites`, `blocks`, `batches`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fathometer.report.page.colours import ACCENT, FAINT, WARM
from fathometer.report.page.vega import PLACES, TEXT, WHOLE, as_spec

if TYPE_CHECKING:
    import altair as alt


def sounding_charts() -> dict[str, dict[str, Any]]:
    """The charts of the view of one sounding, by name. `{gauge}` stands for what is shown."""
    return {
        "signature": as_spec(_signature(), "{gauge} at every site in order of depth, with error bars"),
        "distribution": as_spec(_distribution(), "How many sites have which {gauge}"),
        "batches": as_spec(_batches(), "{gauge} of each batch at the chosen site"),
    }


def _signature() -> alt.LayerChart:
    import altair as alt

    depth = alt.X(
        "order:Q",
        title="site, in order of depth",
        axis=alt.Axis(grid=False, labelExpr=PLACES),
        scale=alt.Scale(nice=False),
    )
    sites = alt.Chart(alt.NamedData("sites"))
    bands = (
        alt.Chart(alt.NamedData("blocks"))
        .mark_rect(color=FAINT, aria=False)
        .encode(
            x=alt.X("begin:Q"),
            x2="end:Q",
            opacity=alt.Opacity("odd:Q", scale=None, legend=None),
            tooltip=[alt.Tooltip("block:N")],
        )
    )
    height = alt.Y("value:Q", title="{gauge}", scale=alt.Scale(zero=False, nice=True))
    bars = sites.mark_rule(opacity=0.6, aria=False).encode(x=depth, y=alt.Y("low:Q"), y2="high:Q")
    line = sites.mark_line(strokeWidth=1, opacity=0.5, color=FAINT, aria=False).encode(x=depth, y=height)
    points = sites.mark_point(filled=True, size=45, opacity=1, cursor="pointer").encode(
        x=depth,
        y=height,
        color=alt.Color("operator:N", legend=alt.Legend(title=None, orient="top")),
        shape=alt.Shape("operator:N", legend=alt.Legend(title=None, orient="top")),
        tooltip=alt.Tooltip("known:N"),
        description=alt.Description("said:N"),
    )
    ring = sites.mark_point(size=180, strokeWidth=2, color=WARM, aria=False).encode(
        x=depth, y=height, opacity=alt.Opacity("chosen:Q", scale=None, legend=None)
    )
    return alt.layer(bands, bars, line, ring, points).properties(width="container", height=280)


def _distribution() -> alt.LayerChart:
    import altair as alt

    sites = alt.Chart(alt.NamedData("sites")).transform_filter("isValid(datum.value)")
    bars = sites.mark_bar(color=ACCENT, cornerRadiusEnd=2).encode(
        x=alt.X("value:Q", bin=alt.Bin(maxbins=24), title="{gauge}"),
        y=alt.Y("count():Q", title="sites", axis=alt.Axis(labelExpr=WHOLE)),
        tooltip=[
            alt.Tooltip("count():Q", title="sites"),
            alt.Tooltip("value:Q", bin=alt.Bin(maxbins=24), title="{gauge}"),
        ],
    )
    return alt.layer(bars).properties(width="container", height=180)


def _batches() -> alt.LayerChart:
    import altair as alt

    batches = alt.Chart(alt.NamedData("batches"))
    points = batches.mark_point(filled=True, size=30, color=ACCENT).encode(
        x=alt.X("batch:Q", title="batch", axis=alt.Axis(labelExpr=WHOLE, grid=False)),
        y=alt.Y("value:Q", title="{gauge}", scale=alt.Scale(zero=False)),
        tooltip=[alt.Tooltip("batch:Q"), alt.Tooltip("value:Q", **TEXT, title="{gauge}")],
    )
    mean = batches.mark_rule(color=WARM, strokeDash=[4, 3]).encode(y="mean(value):Q")
    return alt.layer(points, mean).properties(width="container", height=180)
