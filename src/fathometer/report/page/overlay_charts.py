"""Charts of networks laid over each other, as Vega-Lite. The view gives the data.

`overlay` draws `points`; `alignment` draws `curves`, `joins` and `ticks`; `difference` draws
`pairs` and `zero`. `{gauge}`, `{first}` and `{second}` stand for what is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fathometer.report.page.colours import FAINT
from fathometer.report.page.vega import as_spec

if TYPE_CHECKING:
    import altair as alt

_EXTENT = 34  # pixels left of both charts of two networks, so that one lies under the other


def overlay_charts() -> dict[str, dict[str, Any]]:
    """The charts of the view of several soundings, by name."""
    return {
        "overlay": as_spec(_overlay(), "{gauge} of several networks by relative depth"),
        "alignment": as_spec(
            _alignment(), "{gauge} of A, {first}, above, of B, {second}, below; matched sites are joined"
        ),
        "difference": as_spec(
            _difference(), "{gauge} of B, {second}, less that of A, {first}, for each matched pair"
        ),
    }


def _depth(title: str | None = "relative depth") -> alt.X:
    import altair as alt

    return alt.X(
        "depth:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(grid=False, format="~g")
    )


def _hue() -> alt.Color:
    """Rows bring their colour along."""
    import altair as alt

    return alt.Color("hue:N", scale=None, legend=None)


def _overlay() -> alt.LayerChart:
    import altair as alt

    pointed = alt.selection_point(name="pointed", on="pointerover", clear="pointerout", fields=["network"])
    shown = alt.when(pointed).then(alt.value(1)).otherwise(alt.value(0.12))
    rows, height = alt.Chart(alt.NamedData("points")), alt.Scale(zero=False, nice=True)
    bars = rows.mark_rule(strokeWidth=1).encode(
        x=_depth(), y=alt.Y("low:Q"), y2="high:Q", color=_hue(), opacity=shown
    )
    lines = rows.mark_line(strokeWidth=1.5).encode(
        x=_depth(),
        y=alt.Y("value:Q", title="{gauge}", scale=height),
        detail="network:N",
        color=_hue(),
        opacity=shown,
    )
    points = (
        rows.mark_point(filled=True, size=30)
        .encode(x=_depth(), y="value:Q", color=_hue(), opacity=shown, tooltip=alt.Tooltip("known:N"))
        .add_params(pointed)
    )
    return alt.layer(bars, lines, points).properties(width="container", height=320)


def _alignment() -> alt.LayerChart:
    """Both curves in one box of height 1, each with a scale of its own; the view works out where they lie."""
    import altair as alt

    axis = alt.Axis(labels=False, ticks=False, domain=False, grid=False, minExtent=_EXTENT)
    height = alt.Y("height:Q", title="{gauge}, A above B", axis=axis, scale=alt.Scale(domain=[0, 1]))
    ticks = alt.Chart(alt.NamedData("ticks"))
    grid = ticks.mark_rule(color=FAINT, opacity=0.25).encode(y=height)
    marks = ticks.mark_text(align="left", dx=3, dy=-5, fontSize=10, color=FAINT).encode(
        x=alt.value(0), y=height, text="text:N"
    )
    joins = (
        alt.Chart(alt.NamedData("joins"))
        .mark_rule(color=FAINT, strokeWidth=0.7, opacity=0.8)
        .encode(
            x=_depth(),
            y=height,
            x2="depth2:Q",
            y2="height2:Q",
            tooltip=alt.Tooltip("known:N"),
        )
    )
    rows = alt.Chart(alt.NamedData("curves"))
    lines = rows.mark_line(strokeWidth=1.5).encode(x=_depth(), y=height, detail="which:N", color=_hue())
    points = rows.mark_point(filled=True, size=30, opacity=1).encode(
        x=_depth(), y=height, color=_hue(), tooltip=alt.Tooltip("known:N")
    )
    return alt.layer(grid, joins, lines, points, marks).properties(width="container", height=320)


def _difference() -> alt.LayerChart:
    import altair as alt

    pairs = alt.Chart(alt.NamedData("pairs"))
    axis = alt.Axis(minExtent=_EXTENT)
    height = alt.Y("difference:Q", title="B − A: {gauge}", axis=axis)
    depth = _depth("relative depth, the mean of both")
    zero = alt.Chart(alt.NamedData("zero")).mark_rule(color=FAINT).encode(y=height)
    stems = pairs.mark_rule(strokeWidth=1.5).encode(x=depth, y=height, y2="zero:Q", color=_hue())
    points = pairs.mark_point(filled=True, size=30, opacity=1).encode(
        x=depth, y=height, color=_hue(), tooltip=alt.Tooltip("known:N")
    )
    return alt.layer(zero, stems, points).properties(width="container", height=180)
