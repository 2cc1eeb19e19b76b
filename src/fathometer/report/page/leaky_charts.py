"""Charts of a Leaky ResNet, as Vega-Lite: lines along p, spectra, the plane, networks against their design.

The view gives the data, and words for `{x}` and `{y}`. Rows of `bands` are the bottleneck, of `marks` levels
to compare with.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from fathometer.report.leaky_tables import LINEAR
from fathometer.report.page.colours import ACCENT, FAINT, WARM
from fathometer.report.page.vega import PLAIN, as_spec, powers

if TYPE_CHECKING:
    import altair as alt

Axis: TypeAlias = Literal["linear", "unit", "log", "symlog"]

_TICKS = [-1000, -100, -30, -10, -5, -2, 0, 1, 2, 3, 4, 5, 7, 10, 20, 50, 100, 300, 1000, 10_000]


@cache
def run_charts() -> dict[str, dict[str, Any]]:
    """The charts of the view `runs`, by name."""
    charts = {
        "spectra": as_spec(_spectra(), "Singular values along p, {y}"),
        "path": as_spec(_path(), "The path of all samples together, in the plane that shows most of it"),
        "samples": as_spec(_samples(), "The paths of some samples, in the plane that shows most of all"),
    }
    for axis in get_args(Axis):
        charts[f"lines-{axis}"] = as_spec(_lines(axis), "{y} along {x}")
        charts[f"against-{axis}"] = as_spec(_against(axis), "{y} of every network against {x}")
    return charts


def _height(axis: Axis, field: str = "value:Q") -> alt.Y:
    import altair as alt

    if axis == "symlog":
        ticks = alt.Axis(values=_TICKS, format=PLAIN, labelOverlap=True)
        return alt.Y(field, title="{y}", axis=ticks, scale=alt.Scale(type="symlog", constant=LINEAR))
    if axis == "log":
        return alt.Y(field, title="{y}", axis=powers(), scale=alt.Scale(type="log"))
    scale = alt.Scale(domain=[0, 1]) if axis == "unit" else alt.Scale(zero=False, nice=True)
    return alt.Y(field, title="{y}", scale=scale)


def _along(field: str = "x:Q") -> alt.X:
    import altair as alt

    return alt.X(
        field, title="{x}", axis=alt.Axis(grid=False), scale=alt.Scale(nice=False, zero=False, padding=8)
    )


def _series(kind: Literal["color", "shape"]) -> alt.Color | alt.Shape:
    import altair as alt

    legend = alt.Legend(
        title=None, orient="top", columns=alt.ExprRef("ceil(width / 190)"), labelLimit=260, symbolOpacity=1
    )
    channel = alt.Color if kind == "color" else alt.Shape
    return channel("series:N", scale=alt.Scale(domain=alt.ExprRef("names")), legend=legend)


def _named(chart: alt.LayerChart) -> alt.LayerChart:
    """The series in their order: one legend for colours and shapes."""
    import altair as alt

    return chart.add_params(alt.param(name="names", value=[]))


def _bands() -> alt.Chart:
    import altair as alt

    return (
        alt.Chart(alt.NamedData("bands"))
        .mark_rect(aria=False, opacity=0.12, color=ACCENT)
        .encode(x="begin:Q", x2="end:Q")
    )


def _marks(above: bool = True) -> list[alt.Chart]:
    """Levels to compare with: a dashed line, its name above its left end, or below."""
    import altair as alt

    marks = alt.Chart(alt.NamedData("marks"))
    rule = marks.mark_rule(aria=False, color=FAINT, strokeDash=[5, 4], strokeWidth=1.2).encode(y="value:Q")
    name = marks.mark_text(
        align="left", baseline="bottom" if above else "top", dx=2, dy=-2 if above else 3, fontSize=11
    ).encode(x=alt.value(0), y="value:Q", text="name:N")
    return [rule, name]


def _lines(axis: Axis) -> alt.LayerChart:
    import altair as alt

    rows = alt.Chart(alt.NamedData("rows"))
    line = rows.mark_line(aria=False, strokeWidth=1.6).encode(
        x=_along(), y=_height(axis), color=_series("color")
    )
    points = rows.mark_point(filled=True, size=34, opacity=1).encode(
        x=_along(),
        y=_height(axis),
        color=_series("color"),
        shape=_series("shape"),
        tooltip=alt.Tooltip("known:N"),
        description=alt.Description("said:N"),
    )
    return _named(alt.layer(_bands(), *_marks(), line, points).properties(width="container", height=230))


def _spectra() -> alt.LayerChart:
    """The first k* singular values in colour, the others grey, over four decades at most."""
    import altair as alt

    scale = alt.Scale(type="log", domainMin=alt.ExprRef("low"), nice=False, padding=5)
    height = alt.Y("value:Q", title="{y}", axis=powers(), scale=scale)
    rows = alt.Chart(alt.NamedData("rows"))
    colour = alt.Color(
        "series:N",
        sort=None,
        scale=alt.Scale(range=[ACCENT, FAINT]),
        legend=alt.Legend(title=None, orient="top"),
    )
    thick = alt.StrokeWidth("leading:Q", scale=alt.Scale(domain=[0, 1], range=[0.8, 2]), legend=None)
    line = rows.mark_line(aria=False, clip=True).encode(
        x=_along(), y=height, color=colour, detail="number:N", strokeWidth=thick
    )
    size = alt.Size("leading:Q", scale=alt.Scale(domain=[0, 1], range=[10, 34]), legend=None)
    points = rows.mark_point(filled=True, opacity=1, clip=True).encode(
        x=_along(),
        y=height,
        color=colour,
        size=size,
        tooltip=alt.Tooltip("known:N"),
        description=alt.Description("said:N"),
    )
    chart = alt.layer(_bands(), *_marks(above=False), line, points).properties(width="container", height=260)
    return chart.add_params(alt.param(name="low", value=1e-12))


def _plane() -> dict[str, Any]:
    import altair as alt

    flat: dict[str, Any] = {"axis": alt.Axis(grid=False, tickCount=5), "scale": alt.Scale(zero=False)}
    return {"x": alt.X("x:Q", title="{x}", **flat), "y": alt.Y("y:Q", title="{y}", **flat)}


def _progress() -> alt.Color:
    import altair as alt

    legend = alt.Legend(title="p", orient="top", gradientLength=120)
    return alt.Color("p:Q", scale=alt.Scale(scheme="viridis", domain=[0, 1]), legend=legend)


def _path() -> alt.LayerChart:
    import altair as alt

    rows = alt.Chart(alt.NamedData("rows"))
    line = rows.mark_line(aria=False, color=FAINT, strokeWidth=1.2).encode(**_plane(), order="p:Q")
    points = rows.mark_point(filled=True, aria=False, size=60, opacity=1).encode(
        **_plane(), color=_progress(), tooltip=alt.Tooltip("known:N")
    )
    ends = (
        rows.transform_filter("datum.end")
        .mark_text(aria=False, dy=-12, fontSize=12)
        .encode(**_plane(), text="end:N")
    )
    return alt.layer(line, points, ends).properties(width="container", height=280)


def _samples() -> alt.LayerChart:
    import altair as alt

    rows = alt.Chart(alt.NamedData("rows"))
    line = rows.mark_line(aria=False, color=FAINT, strokeWidth=0.7, opacity=0.6).encode(
        **_plane(), order="p:Q", detail="sample:N"
    )
    points = rows.mark_point(filled=True, aria=False, size=18, opacity=0.9).encode(
        **_plane(), color=_progress(), tooltip=alt.Tooltip("known:N")
    )
    return alt.layer(line, points).properties(width="container", height=280)


def _against(axis: Axis) -> alt.LayerChart:
    """A point for each network, hollow if not critical; lines through medians; bars over p and seeds."""
    import altair as alt

    rows, colour, shape = alt.Chart(alt.NamedData("rows")), _series("color"), _series("shape")
    where = alt.X(
        "x:Q",
        title="{x}",
        axis=alt.Axis(grid=False, values=alt.ExprRef("places"), format=PLAIN),
        scale=alt.Scale(zero=False, padding=12, nice=False),
    )
    bars = rows.mark_rule(aria=False, opacity=0.35, strokeWidth=3).encode(
        x=where, y=_height(axis, "min(low):Q"), y2="max(high):Q", color=colour
    )
    line = rows.mark_line(aria=False, strokeWidth=1.6).encode(
        x=where, y=_height(axis, "median(value):Q"), color=colour
    )
    place = {"x": where, "y": _height(axis)}
    look: dict[str, Any] = {"size": 48, "opacity": 1, "strokeWidth": 1.4, "cursor": "pointer"}
    told = alt.Tooltip("known:N")
    firm = alt.Chart(alt.NamedData("critical")).mark_point(filled=True, **look)
    loose = alt.Chart(alt.NamedData("others")).mark_point(filled=False, **look)
    points = [
        chart.encode(**place, color=colour, shape=shape, tooltip=told, description=alt.Description("said:N"))
        for chart in (firm, loose)
    ]
    ring = (
        alt.Chart(alt.NamedData("chosen"))
        .mark_point(aria=False, size=200, strokeWidth=2, color=WARM)
        .encode(**place)
    )
    level = alt.Chart(alt.NamedData("marks"))
    task = level.mark_line(aria=False, color=FAINT, strokeDash=[5, 4], strokeWidth=1.2).encode(
        x="x:Q", y="value:Q"
    )
    name = (
        level.transform_filter("datum.name")
        .mark_text(align="right", baseline="bottom", dy=-3, fontSize=11)
        .encode(x="x:Q", y="value:Q", text="name:N")
    )
    chart = _named(alt.layer(task, bars, line, ring, *points, name).properties(width="container", height=300))
    return chart.add_params(alt.param(name="places", value=[]))
