"""Step schemes held against each other (Figure 2) as charts: test errors, what a scheme changes, paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import pandas as pd

from fathometer.errors import InputError
from fathometer.leaky import LeakySweep
from fathometer.leaky.plan import Scheme
from fathometer.leaky.schemes import (
    BASELINE,
    CONFIDENCE,
    held_out_errors,
    paired_differences,
    project_paths,
    seed_differences,
)
from fathometer.report.leaky_tables import comparable_schemes
from fathometer.report.page.colours import FAINT
from fathometer.report.page.items import Chart
from fathometer.report.page.vega import TEXT, as_spec

if TYPE_CHECKING:
    import altair as alt


def scheme_items(sweep: LeakySweep) -> list[Chart]:
    """The charts that this sweep can show; none where all its networks have the same steps."""
    found = []
    for make in (_errors, _differences, _plane):
        try:
            found.append(make(sweep))
        except InputError:
            continue  # the sweep lacks what this one compares
    return found


def _errors(sweep: LeakySweep) -> Chart:
    import altair as alt

    paired_differences(sweep)  # refuses what cannot be compared
    groups = held_out_errors(sweep).groupby(["scheme", "layers"])["test_error"]
    rows = pd.DataFrame({"mean": groups.mean(), "std": groups.std().fillna(0)}).reset_index()
    rows["low"], rows["high"] = rows["mean"] - rows["std"], rows["mean"] + rows["std"]
    chart = alt.Chart(alt.NamedData("errors"))
    height = alt.Y("mean:Q", title="test error (MSE)", scale=alt.Scale(zero=False))
    place = {"x": _layers(), "xOffset": _aside(), "color": _look(alt.Color, rows["scheme"])}
    bars = chart.mark_rule(strokeWidth=1.4).encode(
        **place, y=alt.Y("low:Q", title="test error (MSE)"), y2="high:Q"
    )
    tips = [alt.Tooltip(f"{name}:Q", **TEXT) for name in ("mean", "std")]
    points = chart.mark_point(filled=True, size=60, opacity=1).encode(
        **place, y=height, shape=_look(alt.Shape, rows["scheme"]), tooltip=["scheme:N", "layers:Q", *tips]
    )
    spec = alt.layer(bars, points).properties(width="container", height=240)
    caption = "Test error against L for each scheme: mean and standard deviation over seeds."
    return Chart(as_spec(spec, caption), {"errors": rows}, caption)


def _differences(sweep: LeakySweep) -> Chart:
    import altair as alt

    pairs, each = paired_differences(sweep), seed_differences(sweep)
    title = f"test error less that of {BASELINE}"
    place = {"x": _layers(), "xOffset": _aside(), "color": _look(alt.Color, pairs["scheme"])}
    seeds = (
        alt.Chart(alt.NamedData("seeds"))
        .mark_point(filled=True, size=22, opacity=0.5)
        .encode(
            **place,
            y=alt.Y("difference:Q", title=title),
            tooltip=["scheme:N", "seed:Q", alt.Tooltip("difference:Q", **TEXT)],
        )
    )
    means = alt.Chart(alt.NamedData("pairs"))
    bars = means.mark_rule(strokeWidth=2).encode(**place, y=alt.Y("low:Q"), y2="high:Q")
    tips = [alt.Tooltip(f"{name}:Q", **TEXT) for name in ("mean", "low", "high", "wins", "seeds")]
    points = means.mark_point(filled=True, size=80, opacity=1).encode(
        **place, y=alt.Y("mean:Q"), shape=_look(alt.Shape, pairs["scheme"]), tooltip=["scheme:N", *tips]
    )
    zero = alt.Chart(alt.NamedData("zero")).mark_rule(color=FAINT).encode(y="difference:Q")
    spec = alt.layer(zero, seeds, bars, points).properties(width="container", height=240)
    caption = (
        "What a scheme changes within each seed: small points are seeds, the larger their mean with its "
        f"{CONFIDENCE:.0%} interval (Student). Below 0 is better than {BASELINE}."
    )
    data = {"pairs": pairs, "seeds": each, "zero": pd.DataFrame({"difference": [0.0]})}
    return Chart(as_spec(spec, caption), data, caption)


def _plane(sweep: LeakySweep) -> Chart:
    import altair as alt

    runs = comparable_schemes(sweep)
    plane = project_paths(runs)
    rows = pd.concat(
        pd.DataFrame(
            {"scheme": run.design.scheme, "p": run.path.places.numpy(), "x": path[:, 0], "y": path[:, 1]}
        )
        for run, path in zip(runs, plane.paths, strict=True)
    )
    first, second = (f"{share:.0%}" for share in plane.explained)
    flat: dict[str, Any] = {"axis": alt.Axis(grid=False), "scale": alt.Scale(zero=False)}
    chart = alt.Chart(alt.NamedData("paths"))
    place = {
        "x": alt.X("x:Q", title=f"first principal component ({first})", **flat),
        "y": alt.Y("y:Q", title=f"second ({second})", **flat),
        "color": _look(alt.Color, rows["scheme"]),
    }
    line = chart.mark_line(strokeWidth=1.3).encode(**place, order="p:Q")
    points = chart.mark_point(filled=True, size=50, opacity=1).encode(
        **place,
        shape=_look(alt.Shape, rows["scheme"]),
        tooltip=["scheme:N", alt.Tooltip("p:Q", format=".3f")],
    )
    design = runs[0].design
    caption = (
        f"The paths A_p of the schemes in the plane of a joint PCA: L̃ = {design.effective_depth:g}, "
        f"L = {design.layers}, seed {design.seed}. A point is a layer."
    )
    spec = alt.layer(line, points).properties(width="container", height=320)
    return Chart(as_spec(spec, caption), {"paths": rows}, caption)


def _layers() -> alt.X:
    import altair as alt

    return alt.X(
        "layers:O",
        title="layers L",
        axis=alt.Axis(labelAngle=0),
        scale=alt.Scale(paddingInner=0.5, paddingOuter=0.3),
    )


def _aside() -> alt.XOffset:
    import altair as alt

    return alt.XOffset("scheme:N")


def _look(channel: type[alt.Color] | type[alt.Shape], schemes: pd.Series[str]) -> alt.Color | alt.Shape:
    """Each scheme has one colour and one shape in all charts; the legend names those that are there."""
    import altair as alt

    every = list(get_args(Scheme))
    present = [scheme for scheme in every if scheme in set(schemes)]
    legend = alt.Legend(title=None, orient="top", values=present, symbolOpacity=1)
    return channel("scheme:N", scale=alt.Scale(domain=every), legend=legend)
