"""Charts of soundings, as Vega-Lite. A view gives the data, and words for `{gauge}` and other names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any

import altair as alt
import numpy as np

from fathometer.report.page.document import CATEGORIES

FAINT, ACCENT, WARM = "var(--faint)", "var(--accent)", "var(--warm)"
"""Colours of the style sheet, for the background, for a single series and for what is chosen. `draw` in
`page.js` puts in their values."""
LEGIBLE = "#76838f"  # text on a canvas: legible on light and dark, and in print

TEXT: Any = {"format": "", "formatType": "readable"}
"""For a tooltip: the value as `number` of `page.js` writes it, which Vega knows as `readable`."""
PLAIN = ",.6~g"
"""A number as it is: 0.03, 1, 10,000."""
WHOLE_LABELS = "datum.value % 1 ? '' : format(datum.value, 'd')"
"""Labels of an axis that counts: none between whole numbers."""
SITE_LABELS = "datum.value % 1 ? '' : format(datum.value + 1, 'd')"
"""Labels of an axis of sites, from 1 as in the table; `nameSites` puts names there where they fit."""

_TIP = alt.Tooltip("tip:N")  # an object that the view makes: title, and pairs of name and value
_DESCRIPTION = alt.Description("description:N")
_HUE = alt.Color("hue:N", scale=None, legend=None)  # rows have their own colour
_TOP = alt.Legend(title=None, orient="top")


def data(name: str) -> alt.Chart:
    """Return a chart of the data of this name."""
    return alt.Chart(alt.NamedData(name))


def as_spec(chart: alt.TopLevelMixin, description: str, height: int | None = None) -> dict[str, Any]:
    """Return a chart as plain values, as wide as its container; the description is for screen readers."""
    spec: dict[str, Any] = chart.to_dict()
    for name in ("config", "datasets"):
        spec.pop(name, None)
    size = {} if height is None else {"width": "container", "height": height}
    return {**spec, **size, "description": description}


def log_axis() -> alt.Axis:
    """Return ticks of a logarithmic axis at 1, 3, 10, 30, …, and no lines between them."""
    ticks = [digit * 10.0**power for power in range(-12, 13) for digit in (1, 3)]
    return alt.Axis(values=ticks, format=PLAIN, labelOverlap=True)


def category_colours(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each name: those of the figures for up to six, else even steps around the circle.

    Example:
        >>> category_colours(["ResNet", "VGG", "ResNet"])
        {'ResNet': '#0072b2', 'VGG': '#d55e00'}
    """
    known = list(dict.fromkeys(names))
    if len(known) <= len(CATEGORIES):
        return dict(zip(known, CATEGORIES, strict=False))
    return {name: _hue(place / len(known), place % 2 == 1) for place, name in enumerate(known)}


def _hue(turn: float, light: bool) -> str:
    """Return a colour by its place on the circle of OKLCH (Ottosson, 2020), whose lightness is perceived."""
    a, b = 0.13 * math.cos(2 * math.pi * turn), 0.13 * math.sin(2 * math.pi * turn)
    to_lms = np.array([[0.39633778, 0.21580376], [-0.10556135, -0.06385417], [-0.08948418, -1.29148555]])
    to_rgb = np.array(
        [
            [4.07674166, -3.30771159, 0.23096993],
            [-1.26843800, 2.60975740, -0.34131940],
            [-0.00419609, -0.70341861, 1.70761470],
        ]
    )
    linear = np.clip(to_rgb @ ((0.69 if light else 0.58) + to_lms @ [a, b]) ** 3, 0, 1)
    shown = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * part):02x}" for part in shown)


@cache
def sounding_charts() -> dict[str, dict[str, Any]]:
    """Return the charts of one sounding: `signature` (of `sites`, `blocks`), `distribution`, `batches`."""
    place = _place(alt.Scale(nice=False), alt.Scale(zero=False, nice=True))
    chosen = alt.param(name="chosen", value=-1)  # the site that the view shows in detail
    opacity = alt.when("datum.order === chosen").then(alt.value(1)).otherwise(alt.value(0))
    ring = data("sites").mark_point(size=180, strokeWidth=2, color=WARM, aria=False)
    points = _points("sites").mark_point(filled=True, size=45, opacity=1, cursor="pointer")
    layers = (_bands(), *_line(place), ring.encode(**place, opacity=opacity), points.encode(**place))
    signature = alt.layer(*layers).add_params(chosen)
    bins = alt.Bin(maxbins=24)
    bars = data("sites").transform_filter("isValid(datum.value)").mark_bar(color=ACCENT, cornerRadiusEnd=2)
    distribution = bars.encode(
        x=alt.X("value:Q", bin=bins, title="{gauge}"),
        y=alt.Y("count():Q", title="sites", axis=alt.Axis(labelExpr=WHOLE_LABELS)),
        tooltip=[alt.Tooltip("count():Q", title="sites"), alt.Tooltip("value:Q", bin=bins, title="{gauge}")],
    )
    modes = data("modes").mark_rule(color=WARM, strokeDash=[4, 3]).encode(x="value:Q")
    batches = data("batches").mark_point(filled=True, size=30, color=ACCENT).encode(
        x=alt.X("batch:Q", title="batch", axis=alt.Axis(labelExpr=WHOLE_LABELS, grid=False)),
        y=alt.Y("value:Q", title="{gauge}", scale=alt.Scale(zero=False)),
        tooltip=[alt.Tooltip("batch:Q"), alt.Tooltip("value:Q", title="{gauge}", **TEXT)],
    ) + data("batches").mark_rule(color=WARM, strokeDash=[4, 3]).encode(y="mean(value):Q")
    return {
        "signature": as_spec(signature, "{gauge} at every site in order of depth, with error bars", 280),
        "distribution": as_spec(alt.layer(distribution, modes), "How many sites have which {gauge}", 180),
        "batches": as_spec(batches, "{gauge} of each batch at the chosen site", 180),
    }


@cache
def overlay_charts() -> dict[str, dict[str, Any]]:
    """Return the charts of several soundings.

    `overlay` draws `points`; `alignment` draws `curves`, `joins` and `ticks`; `difference` draws `pairs` and
    `zero`. `{first}` and `{second}` are two networks, A and B.
    """
    flat: Any = {"scale": alt.Scale(domain=[0, 1]), "axis": alt.Axis(grid=False, format="~g")}
    depth = alt.X("depth:Q", title="relative depth", **flat)
    pointed = alt.selection_point(name="pointed", on="pointerover", clear="pointerout", fields=["network"])
    shown = alt.when(pointed).then(alt.value(1)).otherwise(alt.value(0.12))
    value = alt.Y("value:Q", title="{gauge}", scale=alt.Scale(zero=False, nice=True))
    rows = data("points").encode(x=depth, color=_HUE, opacity=shown)
    overlay = alt.layer(
        rows.mark_rule(strokeWidth=1).encode(y=alt.Y("low:Q"), y2="high:Q"),
        rows.mark_line(strokeWidth=1.5).encode(y=value, detail="network:N"),
        rows.mark_point(filled=True, size=30).encode(y="value:Q", tooltip=_TIP).add_params(pointed),
    )
    # Both curves are in one box of height 1, each with a scale of its own; the view finds their places.
    room = 34  # pixels left of both charts of two networks, so that one is exactly under the other
    bare = alt.Axis(labels=False, ticks=False, domain=False, grid=False, minExtent=room)
    height = alt.Y("height:Q", title="{gauge}, A above B", axis=bare, scale=alt.Scale(domain=[0, 1]))
    curves = data("curves").encode(x=depth, y=height, color=_HUE)
    alignment = alt.layer(
        data("ticks").mark_rule(color=FAINT, opacity=0.25).encode(y=height),
        data("joins")
        .mark_rule(color=FAINT, strokeWidth=0.7, opacity=0.8)
        .encode(x=depth, y=height, x2="depth2:Q", y2="height2:Q", tooltip=_TIP),
        curves.mark_line(strokeWidth=1.5).encode(detail="which:N"),
        curves.mark_point(filled=True, size=30, opacity=1).encode(tooltip=_TIP),
        data("ticks")
        .mark_text(align="left", dx=3, dy=-5, fontSize=10, color=FAINT)
        .encode(x=alt.value(0), y=height, text="text:N"),
    )
    change = alt.Y("difference:Q", title="B − A: {gauge}", axis=alt.Axis(minExtent=room))
    pairs = data("pairs").encode(
        x=alt.X("depth:Q", title="relative depth, the mean of both", **flat), y=change, color=_HUE
    )
    difference = alt.layer(
        data("zero").mark_rule(color=FAINT).encode(y=change),
        pairs.mark_rule(strokeWidth=1.5).encode(y2="zero:Q"),
        pairs.mark_point(filled=True, size=30, opacity=1).encode(tooltip=_TIP),
    )
    joined = "{gauge} of A, {first}, above, of B, {second}, below; matched sites are joined"
    minus = "{gauge} of B, {second}, minus that of A, {first}, for each matched pair"
    return {
        "overlay": as_spec(overlay, "{gauge} of several networks by relative depth", 320),
        "alignment": as_spec(alignment, joined, 320),
        "difference": as_spec(difference, minus, 180),
    }


@cache
def atlas_charts() -> dict[str, dict[str, Any]]:
    """Return the charts of an atlas: `scatter` of `networks`, and those of one and of several soundings."""
    dots = data("networks").mark_point(filled=True, size=60, opacity=0.85, cursor="pointer")
    free = alt.Scale(zero=False)  # the view makes an axis logarithmic where it needs that
    scatter = dots.encode(
        x=alt.X("x:Q", title="{x}", scale=free),
        y=alt.Y("y:Q", title="{y}", scale=free),
        color=_HUE,
        tooltip=_TIP,
    )
    text = "Networks by {x} and {y}, a point for each, coloured by family"
    return {"scatter": as_spec(scatter, text, 300), **sounding_charts(), **overlay_charts()}


@cache
def film_charts() -> dict[str, dict[str, Any]]:
    """Return the charts of a training: one step along depth, all steps as a map, what was logged.

    The view gives new data for each step, and the axes once, as parameters: `span` of values, `depth`,
    `reach` of steps, `operators`.
    """
    on_canvas = {"usermeta": {"embedOptions": {"renderer": "canvas"}}}  # thousands of cells
    text = "{gauge} at every site in order of depth at the current step, behind it the first"
    linear = _metric(alt.Scale(zero=False, nice=True), alt.Axis(format=PLAIN, tickCount=5))
    log = _metric(alt.Scale(type="log", nice=True), log_axis())
    return {
        "frame": as_spec(_frame(), text, 300),
        "map": as_spec(_map(), "{gauge} of every site at every step", 240) | on_canvas,
        "metric-linear": as_spec(linear, "{metric} over the steps", 200),
        "metric-log": as_spec(log, "{metric} over the steps, on a logarithmic axis", 200),
    }


def _frame() -> alt.TopLevelMixin:
    place = _place(_fixed("depth", nice=False), _fixed("span", nice=False, zero=False, padding=6))
    first = data("first").encode(**place)
    before: Any = {"strokeWidth": 1, "opacity": 0.55, "color": FAINT, "aria": False}
    points = _points("sites", _fixed("operators")).mark_point(filled=True, size=45, opacity=1)
    return alt.layer(
        _bands(),
        first.mark_line(strokeDash=[4, 3], **before),
        first.mark_point(size=28, **before),
        *_line(place),
        points.encode(**place),
    ).add_params(*_given("depth", "span", "operators"))


def _map() -> alt.Chart:
    """Draw a column for each step, as wide as half-way to its neighbours, the first site on top."""
    grey: dict[str, Any] = {"labelColor": LEGIBLE, "titleColor": LEGIBLE}
    steps = alt.Axis(grid=False, format=PLAIN, labelOverlap=True, tickMinStep=1, **grey)
    sites = alt.Axis(grid=False, labelExpr=SITE_LABELS, **grey)
    legend = alt.Legend(orient="top", gradientLength=160, **grey)
    down = _fixed("depth", nice=False, reverse=True)
    cells = data("cells").mark_rect(cursor="pointer", aria=False)
    chart = cells.encode(
        x=alt.X("begin:Q", title="step", axis=steps, scale=_fixed("reach", nice=False, zero=False)),
        x2="end:Q",
        y=alt.Y("top:Q", title="site, in order of depth", axis=sites, scale=down),
        y2="bottom:Q",
        color=alt.Color("value:Q", title="{gauge}", scale=alt.Scale(scheme="cividis"), legend=legend),
        tooltip=_TIP,
    )
    return chart.add_params(*_given("depth", "reach"))


def _metric(scale: alt.Scale, ticks: alt.Axis) -> alt.TopLevelMixin:
    steps = alt.Axis(grid=False, format=PLAIN, labelOverlap=True, tickMinStep=1)
    step = alt.X("step:Q", title="step", axis=steps, scale=_fixed("reach", nice=False, zero=False))
    rows = data("rows").encode(x=step, y=alt.Y("value:Q", title="{metric}", scale=scale, axis=ticks))
    return alt.layer(
        rows.mark_line(strokeWidth=1.4, aria=False),
        data("now").mark_rule(color=WARM, strokeWidth=2, aria=False).encode(x=step),
        rows.mark_point(size=120, opacity=0, cursor="pointer", aria=False).encode(tooltip=_TIP),
    ).add_params(*_given("reach"))


def _bands() -> alt.Chart:
    opacity = alt.Opacity("odd:Q", scale=None, legend=None)
    blocks = data("blocks").mark_rect(color=FAINT, aria=False)
    return blocks.encode(x=alt.X("begin:Q"), x2="end:Q", opacity=opacity, tooltip=[alt.Tooltip("block:N")])


def _place(depth: alt.Scale, height: alt.Scale) -> dict[str, Any]:
    """Return the axes of a signature: sites in order of depth, and their values."""
    axis = alt.Axis(grid=False, labelExpr=SITE_LABELS)
    return {
        "x": alt.X("order:Q", title="site, in order of depth", axis=axis, scale=depth),
        "y": alt.Y("value:Q", title="{gauge}", scale=height),
    }


def _line(place: dict[str, Any]) -> tuple[alt.Chart, alt.Chart]:
    """Draw error bars, and a thin line from site to site."""
    sites = data("sites")
    return (
        sites.mark_rule(opacity=0.6, aria=False).encode(x=place["x"], y="low:Q", y2="high:Q"),
        sites.mark_line(strokeWidth=1, opacity=0.5, color=FAINT, aria=False).encode(**place),
    )


def _points(name: str, scale: alt.Scale | None = None) -> alt.Chart:
    """Encode sites by operator, with all that is known of them."""
    look: Any = {"legend": _TOP} if scale is None else {"legend": _TOP, "scale": scale}
    return data(name).encode(
        color=alt.Color("operator:N", **look),
        shape=alt.Shape("operator:N", **look),
        tooltip=_TIP,
        description=_DESCRIPTION,
    )


def _fixed(name: str, **settings: Any) -> alt.Scale:
    """Return a scale whose domain is a parameter, so that it does not change from step to step."""
    return alt.Scale(domain=alt.ExprRef(name), **settings)


def _given(*names: str) -> list[alt.Parameter]:
    return [alt.param(name=name, value=[0, 1]) for name in names]
