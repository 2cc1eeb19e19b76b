"""Charts of Leaky ResNets, as Vega-Lite: along p, the plane, networks against their design, step schemes.

A view gives the data. Rows of `bands` are the bottleneck, of `marks` levels to compare with.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import altair as alt
import pandas as pd

from fathometer.errors import InputError
from fathometer.leaky import LeakySweep
from fathometer.leaky.measures import CRITICAL
from fathometer.leaky.schemes import BASELINE, CONFIDENCE, paired_differences, seed_differences
from fathometer.report.leaky_tables import (
    LINEAR,
    RUN_PANELS,
    SCHEME_LOOKS,
    SERIES,
    SWEEP_PANELS,
    Panel,
    error_table,
    scheme_paths,
)
from fathometer.report.page.charts import ACCENT, FAINT, PLAIN, TEXT, WARM, as_spec, data, log_axis
from fathometer.report.page.items import Chart

_SHAPES = {
    "": "circle",
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "v": "triangle-down",
    "D": "diamond",
    "P": "cross",
}
_TICKS = [-1000, -100, -30, -10, -5, -2, 0, 1, 2, 3, 4, 5, 7, 10, 20, 50, 100, 300, 1000, 10_000]
_VALUE = alt.Tooltip("value:Q", **TEXT)
_DASHED: Any = {"aria": False, "color": FAINT, "strokeDash": [5, 4], "strokeWidth": 1.2}


@cache
def run_charts() -> dict[str, dict[str, Any]]:
    """Return the charts of the view `runs`, by name: of every panel, of spectra, and of paths in a plane."""
    path, samples = _path(60, 1.2, "cost_of_identity"), _path(18, 0.7, "sample")
    charts = {
        "spectra": as_spec(_spectra(), "Singular values along p, {y}", 260),
        "path": as_spec(path, "The path of all samples together, in the plane that shows most", 280),
        "samples": as_spec(samples, "The paths of some samples, in the plane that shows most", 280),
    }
    for panel in RUN_PANELS:
        charts[panel.part] = as_spec(_lines(panel), f"{panel.y} along {panel.x}", 230)
    for panel in SWEEP_PANELS:
        charts[panel.part] = as_spec(_against(panel), f"{panel.y} of every network against {{x}}", 300)
    return charts


def _height(panel: Panel, field: str = "value:Q") -> alt.Y:
    ticks = alt.Axis(values=_TICKS, format=PLAIN, labelOverlap=True)
    scales: dict[str, Any] = {
        "symlog": {"axis": ticks, "scale": alt.Scale(type="symlog", constant=LINEAR)},
        "log": {"axis": log_axis(), "scale": alt.Scale(type="log")},
        "unit": {"scale": alt.Scale(domain=[0, 1])},
        "linear": {"scale": alt.Scale(zero=False, nice=True)},
    }
    return alt.Y(field, title=panel.y, **scales[panel.axis])


def _along(name: str) -> alt.X:
    scale = alt.Scale(nice=False, zero=False, padding=8)
    return alt.X(f"{name}:Q", title=name, axis=alt.Axis(grid=False), scale=scale)


def _folded(panel: Panel) -> alt.Chart:
    """Turn the columns of a panel into rows with `series` and `value`, and `low` and `high` for bars."""
    shown = "isValid(datum.value) && datum.value > 0" if panel.axis == "log" else "isValid(datum.value)"
    ends = {end: f"datum[datum.column + '_{name}']" for end, name in (("low", "min"), ("high", "max"))}
    return (
        data("rows")
        .transform_fold(list(panel.series), as_=["column", "value"])
        .transform_filter(shown)
        .transform_calculate(
            series=f"({json.dumps(dict(panel.series))})[datum.column]",
            **{end: f"isValid({field}) ? {field} : datum.value" for end, field in ends.items()},
        )
    )


def _series(panel: Panel) -> tuple[alt.Color, alt.Shape]:
    """Return colours and shapes of the series, the same as in print, in one legend."""
    looks = {label: SERIES[name][1:] for name, label in panel.series.items()}
    return _look("series:N", looks, columns=alt.ExprRef("ceil(width / 190)"), labelLimit=260)


def _look(field: str, looks: Mapping[str, tuple[str, str]], **legend: Any) -> tuple[alt.Color, alt.Shape]:
    """Return colours and shapes by name, in one legend; `looks` are colours and markers as in print."""
    names, top = list(looks), alt.Legend(title=None, orient="top", symbolOpacity=1, **legend)
    colours = alt.Scale(domain=names, range=[colour for colour, _ in looks.values()])
    shapes = alt.Scale(domain=names, range=[_SHAPES[marker] for _, marker in looks.values()])
    return alt.Color(field, scale=colours, legend=top), alt.Shape(field, scale=shapes, legend=top)


def _bands() -> alt.Chart:
    return data("bands").mark_rect(aria=False, opacity=0.12, color=ACCENT).encode(x="begin:Q", x2="end:Q")


def _marks(*, above: bool = True) -> list[alt.Chart]:
    """Draw levels to compare with: a dashed line, its name above its left end, or below."""
    side: Any = {"baseline": "bottom", "dy": -2} if above else {"baseline": "top", "dy": 3}
    name = data("marks").mark_text(align="left", dx=2, fontSize=11, **side)
    return [
        data("marks").mark_rule(**_DASHED).encode(y="value:Q"),
        name.encode(x=alt.value(0), y="value:Q", text="name:N"),
    ]


def _lines(panel: Panel) -> alt.TopLevelMixin:
    colour, shape = _series(panel)
    x = str(panel.x)
    rows = _folded(panel).encode(x=_along(x), y=_height(panel), color=colour)
    tips = ["series:N", alt.Tooltip(f"{x}:Q", **TEXT), _VALUE]
    points = rows.mark_point(filled=True, size=34, opacity=1).encode(shape=shape, tooltip=tips)
    return alt.layer(_bands(), *_marks(), rows.mark_line(aria=False, strokeWidth=1.6), points)


def _spectra() -> alt.TopLevelMixin:
    """Draw the first k* singular values in colour, the others grey, from `low` on."""
    scale = alt.Scale(type="log", domainMin=alt.ExprRef("low"), nice=False, padding=5)
    legend = alt.Legend(title=None, orient="top")
    hues = alt.Scale(domain=["first k*", "others"], range=[ACCENT, FAINT])
    leading = alt.when("datum.series === 'first k*'")
    rows = data("rows").transform_filter("datum.value > 0")
    rows = rows.encode(
        x=_along("p"),
        y=alt.Y("value:Q", title="{y}", axis=log_axis(), scale=scale),
        color=alt.Color("series:N", scale=hues, legend=legend),
    )
    line = rows.mark_line(aria=False, clip=True).encode(
        detail="number:N", strokeWidth=leading.then(alt.value(2)).otherwise(alt.value(0.8))
    )
    points = rows.mark_point(filled=True, opacity=1, clip=True).encode(
        size=leading.then(alt.value(34)).otherwise(alt.value(10)),
        tooltip=["number:Q", alt.Tooltip("p:Q", **TEXT), _VALUE],
    )
    return alt.layer(_bands(), *_marks(above=False), line, points).add_params(
        alt.param(name="low", value=1e-12)
    )


def _path(size: float, width: float, also: str) -> alt.TopLevelMixin:
    """Draw paths in a plane, coloured by p; `also` is a column for the tooltip."""
    legend = alt.Legend(title="p", orient="top", gradientLength=120)
    colour = alt.Color("p:Q", scale=alt.Scale(scheme="cividis", domain=[0, 1]), legend=legend)
    rows = data("rows").encode(**_plane("{x}", "{y}"))
    tips = [alt.Tooltip("p:Q", **TEXT), alt.Tooltip(f"{also}:Q", title=also.replace("_", " "), **TEXT)]
    return alt.layer(
        rows.mark_line(aria=False, color=FAINT, strokeWidth=width).encode(order="p:Q", detail="sample:N"),
        rows.mark_point(filled=True, aria=False, size=size, opacity=1).encode(color=colour, tooltip=tips),
        data("ends").mark_text(aria=False, dy=-12, fontSize=12).encode(**_plane("{x}", "{y}"), text="end:N"),
    )


def _plane(x: str, y: str) -> dict[str, Any]:
    flat: dict[str, Any] = {"axis": alt.Axis(grid=False, tickCount=5), "scale": alt.Scale(zero=False)}
    return {"x": alt.X("x:Q", title=x, **flat), "y": alt.Y("y:Q", title=y, **flat)}


def _against(panel: Panel) -> alt.TopLevelMixin:
    """Draw a point for each network, hollow if not critical; lines through medians; bars over p and seeds.

    The network `chosen`, a parameter, has a ring.
    """
    colour, shape = _series(panel)
    where = alt.X(
        "x:Q",
        title="{x}",
        axis=alt.Axis(grid=False, values=alt.ExprRef("places"), format=PLAIN),
        scale=alt.Scale(zero=False, padding=12, nice=False),
    )
    rows = _folded(panel).encode(x=where, color=colour)
    networks = rows.encode(y=_height(panel))
    points = networks.mark_point(size=48, opacity=1, strokeWidth=1.4, cursor="pointer").encode(
        shape=shape,
        fill=alt.Fill("series:N", scale=colour["scale"], legend=colour["legend"]),
        fillOpacity=alt.when(f"datum.crit > {CRITICAL}").then(alt.value(0)).otherwise(alt.value(1)),
        tooltip=["series:N", "network:N", _VALUE, alt.Tooltip("crit:Q", **TEXT)],
        description="network:N",
    )
    ring = networks.mark_point(aria=False, size=200, strokeWidth=2).encode(
        color=alt.value(WARM),
        opacity=alt.when("datum.run === chosen").then(alt.value(1)).otherwise(alt.value(0)),
    )
    level = data("marks").encode(x="x:Q", y="value:Q")
    name = level.mark_text(align="right", baseline="bottom", dy=-3, fontSize=11)
    return alt.layer(
        level.mark_line(**_DASHED),
        rows.mark_rule(aria=False, opacity=0.35, strokeWidth=3).encode(
            y=_height(panel, "min(low):Q"), y2="max(high):Q"
        ),
        rows.mark_line(aria=False, strokeWidth=1.6).encode(y=_height(panel, "median(value):Q")),
        ring,
        points,
        name.transform_filter("datum.name").encode(text="name:N"),
    ).add_params(alt.param(name="places", value=[]), alt.param(name="chosen", value=-1))


def scheme_items(sweep: LeakySweep) -> list[Chart]:
    """Return the charts of step schemes (Figure 2) that this sweep can show; none if all have the same."""
    found = []
    for make in (_errors, _differences, _paths):
        try:
            found.append(make(sweep))
        except InputError:
            continue  # the sweep lacks what this one compares
    return found


def _errors(sweep: LeakySweep) -> Chart:
    paired_differences(sweep)  # refuses what cannot be compared
    rows = error_table(sweep)
    base, shape = _schemes("errors", rows["scheme"])
    tips = ["scheme:N", "layers:Q", alt.Tooltip("mean:Q", **TEXT), alt.Tooltip("std:Q", **TEXT)]
    bars = base.mark_rule(strokeWidth=1.4).encode(y=alt.Y("low:Q", title="test error (MSE)"), y2="high:Q")
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        y=alt.Y("mean:Q", title="test error (MSE)", scale=alt.Scale(zero=False)), shape=shape, tooltip=tips
    )
    caption = "Test error against L for each scheme: mean and standard deviation over seeds."
    return Chart(as_spec(alt.layer(bars, points), caption, 240), {"errors": rows}, caption)


def _differences(sweep: LeakySweep) -> Chart:
    pairs, each = paired_differences(sweep), seed_differences(sweep)
    seeds, _ = _schemes("seeds", pairs["scheme"])
    means, shape = _schemes("pairs", pairs["scheme"])
    change = alt.Y("difference:Q", title=f"test error minus that of {BASELINE}")
    tips = [alt.Tooltip(f"{name}:Q", **TEXT) for name in ("mean", "low", "high", "wins", "seeds")]
    chart = alt.layer(
        data("zero").mark_rule(color=FAINT).encode(y="difference:Q"),
        seeds.mark_point(filled=True, size=22, opacity=0.5).encode(
            y=change, tooltip=["scheme:N", "seed:Q", alt.Tooltip("difference:Q", **TEXT)]
        ),
        means.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2="high:Q"),
        means.mark_point(filled=True, size=80, opacity=1).encode(
            y=alt.Y("mean:Q"), shape=shape, tooltip=["scheme:N", *tips]
        ),
    )
    caption = (
        "What a scheme changes within each seed: small points are seeds, the larger their mean with its "
        f"{CONFIDENCE:.0%} interval (Student). Below 0 is better than {BASELINE}."
    )
    tables = {"pairs": pairs, "seeds": each, "zero": pd.DataFrame({"difference": [0.0]})}
    return Chart(as_spec(chart, caption, 240), tables, caption)


def _paths(sweep: LeakySweep) -> Chart:
    rows, runs, (first, second) = scheme_paths(sweep)
    colour, shape = _scheme_look(rows["scheme"])
    axes = _plane(f"first principal component ({first:.0%})", f"second ({second:.0%})")
    base = data("paths").encode(**axes, color=colour)
    tips = ["scheme:N", alt.Tooltip("p:Q", **TEXT)]
    chart = alt.layer(
        base.mark_line(strokeWidth=1.3).encode(order="p:Q"),
        base.mark_point(filled=True, size=50, opacity=1).encode(shape=shape, tooltip=tips),
    )
    design = runs[0].design
    caption = (
        f"The paths A_p of the schemes in the plane of a joint PCA: L̃ = {design.effective_depth:g}, "
        f"L = {design.layers}, seed {design.seed}. A point is a layer."
    )
    return Chart(as_spec(chart, caption, 320), {"paths": rows}, caption)


def _schemes(name: str, schemes: pd.Series[str]) -> tuple[alt.Chart, alt.Shape]:
    """Return a chart by layers, schemes side by side, and their shapes."""
    colour, shape = _scheme_look(schemes)
    scale = alt.Scale(paddingInner=0.5, paddingOuter=0.3)
    layers = alt.X("layers:O", title="layers L", axis=alt.Axis(labelAngle=0), scale=scale)
    return data(name).encode(x=layers, xOffset=alt.XOffset("scheme:N"), color=colour), shape


def _scheme_look(schemes: pd.Series[str]) -> tuple[alt.Color, alt.Shape]:
    """Return one colour and one shape for each scheme; the legend names those that are there."""
    return _look("scheme:N", SCHEME_LOOKS, values=[name for name in SCHEME_LOOKS if name in set(schemes)])
