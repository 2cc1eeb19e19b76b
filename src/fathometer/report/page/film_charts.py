"""Charts of a film, as Vega-Lite: one step along depth, all steps as a map, what was logged beside them.

The view gives the data anew for each step, and the axes once: `span` of values, `depth`, `reach` of steps.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from fathometer.report.page.colours import FAINT, LEGIBLE, WARM
from fathometer.report.page.vega import PLACES, PLAIN, as_spec, powers

if TYPE_CHECKING:
    import altair as alt

    AnyChart = TypeVar("AnyChart", alt.Chart, alt.LayerChart)


@cache
def film_charts() -> dict[str, dict[str, Any]]:
    """The charts of the view `film`, by name. `{gauge}` and `{metric}` stand for what is shown."""
    on_canvas = {"embedOptions": {"renderer": "canvas"}}  # thousands of cells
    return {
        "frame": as_spec(
            _frame(), "{gauge} at every site in order of depth at the current step, before it the first"
        ),
        "map": {**as_spec(_map(), "{gauge} of every site at every step"), "usermeta": on_canvas},
        "metric-linear": as_spec(_metric("linear"), "{metric} over the steps"),
        "metric-log": as_spec(_metric("log"), "{metric} over the steps, on a logarithmic axis"),
    }


def _frame() -> alt.LayerChart:
    import altair as alt

    axis = alt.Axis(grid=False, labelExpr=PLACES)
    depth = alt.X("order:Q", title="site, in order of depth", axis=axis, scale=_fixed("depth", nice=False))
    height = alt.Y("value:Q", title="{gauge}", scale=_fixed("span", nice=False, zero=False, padding=6))
    blocks = alt.Chart(alt.NamedData("blocks")).mark_rect(color=FAINT, aria=False)
    bands = blocks.encode(
        x="begin:Q", x2="end:Q", opacity=alt.Opacity("odd:Q", scale=None, legend=None), tooltip=["block:N"]
    )
    first, sites = alt.Chart(alt.NamedData("first")), alt.Chart(alt.NamedData("sites"))
    before = first.mark_line(strokeWidth=1, strokeDash=[4, 3], opacity=0.55, color=FAINT, aria=False)
    hollow = first.mark_point(size=28, strokeWidth=1, opacity=0.55, color=FAINT, aria=False)
    ghosts = [chart.encode(x=depth, y=height) for chart in (before, hollow)]
    bars = sites.mark_rule(opacity=0.6, aria=False).encode(x=depth, y="low:Q", y2="high:Q")
    line = sites.mark_line(strokeWidth=1, opacity=0.5, color=FAINT, aria=False).encode(x=depth, y=height)
    legend = alt.Legend(title=None, orient="top")
    points = sites.mark_point(filled=True, size=45, opacity=1).encode(
        x=depth,
        y=height,
        color=alt.Color("operator:N", scale=_fixed("operators"), legend=legend),
        shape=alt.Shape("operator:N", scale=_fixed("operators"), legend=legend),
        tooltip=alt.Tooltip("known:N"),
        description=alt.Description("said:N"),
    )
    chart = alt.layer(bands, *ghosts, bars, line, points).properties(width="container", height=300)
    return _told(chart, "depth", "span", "operators")


def _map() -> alt.Chart:
    """A column for each step, as wide as half-way to its neighbours, the first site on top."""
    import altair as alt

    grey: dict[str, Any] = {"labelColor": LEGIBLE, "titleColor": LEGIBLE}
    steps = alt.Axis(grid=False, format=PLAIN, labelOverlap=True, **grey)
    sites = alt.Axis(grid=False, labelExpr=PLACES, **grey)
    legend = alt.Legend(orient="top", gradientLength=160, **grey)
    cells = alt.Chart(alt.NamedData("cells")).mark_rect(cursor="pointer", aria=False)
    down = _fixed("depth", nice=False, reverse=True)
    chart = cells.encode(
        x=alt.X("begin:Q", title="step", axis=steps, scale=_fixed("reach", nice=False, zero=False)),
        x2="end:Q",
        y=alt.Y("top:Q", title="site, in order of depth", axis=sites, scale=down),
        y2="bottom:Q",
        color=alt.Color("value:Q", title="{gauge}", scale=alt.Scale(scheme="viridis"), legend=legend),
        tooltip=alt.Tooltip("known:N"),
    )
    return _told(chart.properties(width="container", height=240), "depth", "reach")


def _metric(axis: Literal["linear", "log"]) -> alt.LayerChart:
    import altair as alt

    scale = alt.Scale(type="log", nice=True) if axis == "log" else alt.Scale(zero=False, nice=True)
    ticks = powers() if axis == "log" else alt.Axis(format=PLAIN, tickCount=5)
    height = alt.Y("value:Q", title="{metric}", scale=scale, axis=ticks)
    ticks_of_steps = alt.Axis(grid=False, format=PLAIN, labelOverlap=True)
    reach = _fixed("reach", nice=False, zero=False)
    step = alt.X("step:Q", title="step", axis=ticks_of_steps, scale=reach)
    rows = alt.Chart(alt.NamedData("rows"))
    line = rows.mark_line(strokeWidth=1.4, aria=False).encode(x=step, y=height)
    near = rows.mark_point(size=120, opacity=0, cursor="pointer", aria=False).encode(
        x=step, y=height, tooltip=alt.Tooltip("known:N")
    )
    now = alt.Chart(alt.NamedData("now")).mark_rule(color=WARM, strokeWidth=2, aria=False).encode(x=step)
    return _told(alt.layer(line, now, near).properties(width="container", height=200), "reach")


def _fixed(name: str, **settings: Any) -> alt.Scale:
    """A scale whose domain the view tells: it need not be found again at every step of the film."""
    import altair as alt

    return alt.Scale(domain=alt.ExprRef(name), **settings)


def _told(chart: AnyChart, *names: str) -> AnyChart:
    import altair as alt

    return chart.add_params(*(alt.param(name=name, value=[0, 1]) for name in names))
