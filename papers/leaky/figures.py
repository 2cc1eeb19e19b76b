"""Figures of statements: both sides against each other, and several lines along one axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fathometer.report import DARK, PALETTE, column_figure, for_print, legend_above, series_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = Mapping[str, tuple[Sequence[float], Sequence[float]]]
"""By name, x and y."""


@for_print
def plot_sides(points: Points, x: str, y: str) -> Figure:
    """Draw both sides of a statement on logarithmic axes, with a line where they are equal."""
    figure = column_figure(1, 3.0)
    draw_sides(figure.subplots(), points, x, y)
    legend_above(figure, figure.axes[0].collections)
    return figure


def draw_sides(axes: Axes, points: Points, x: str, y: str) -> None:
    """Draw the same on given axes."""
    from matplotlib.ticker import FixedLocator, NullFormatter

    wide, high = (_ends([np.asarray(xy[side], float) for xy in points.values()]) for side in (0, 1))
    ends = min(wide[0], high[0]), max(wide[1], high[1])
    axes.plot(ends, ends, color=DARK, linewidth=0.6, zorder=1)
    for number, (name, (across, up)) in enumerate(points.items()):
        style = series_style(number)
        axes.scatter(
            across, up, s=9, color=style["color"], marker=style["marker"], alpha=0.7, linewidths=0, label=name
        )
    axes.set(xscale="log", yscale="log", xlim=wide, ylim=high, xlabel=x, ylabel=y)
    for axis, (low, top) in ((axes.xaxis, wide), (axes.yaxis, high)):
        if top < 100 * low:
            axis.set_major_locator(FixedLocator([f * 10.0**n for n in range(-9, 10) for f in (1, 2, 5)]))
            axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())


@for_print
def plot_differences(points: Points, limit: float) -> Figure:
    """Draw errors against L̃, with the limit below which a statement is exact; 0 is drawn as 1e-17."""
    figure = column_figure(1, 2.6)
    axes = figure.subplots()
    for number, (name, (depths, errors)) in enumerate(points.items()):
        style = series_style(number)
        axes.scatter(
            np.asarray(depths) * (1 + 0.02 * number),  # a little to the side
            np.maximum(np.asarray(errors, float), 1e-17),
            s=11,
            color=style["color"],
            marker=style["marker"],
            linewidths=0,
            label=name,
        )
    axes.axhline(limit, color=DARK, linewidth=0.6, linestyle="--")
    axes.set(yscale="log", xlabel=r"effective depth $\tilde{L}$", ylabel="relative difference")
    legend_above(figure, axes.collections)
    return figure


def _ends(sides: list[npt.NDArray[np.float64]]) -> tuple[float, float]:
    """Compute limits a little beyond the values of a logarithmic axis."""
    values = np.concatenate(sides)
    shown = values[np.isfinite(values) & (values > 0)]
    return (0.7 * float(shown.min()), 1.4 * float(shown.max())) if len(shown) else (0.1, 10.0)


def draw_lines(
    axes: Axes,
    x: npt.ArrayLike,
    lines: Sequence[npt.ArrayLike],
    label: str,
    number: int,
    *,
    marker: bool = True,
) -> None:
    """Draw one line for each seed or draw in one colour, with one label."""
    style = series_style(number)
    for which, values in enumerate(lines):
        axes.plot(
            np.asarray(x),
            np.asarray(values),
            color=PALETTE[number],
            marker=style["marker"] if marker else None,
            linestyle="-",
            linewidth=0.8,
            alpha=max(0.35, 1 / len(lines)),
            label=label if which == 0 else None,
        )
