"""One sounding along depth: error bars, operators by colour, blocks by bands; its strip and distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fathometer.compare import two_modes
from fathometer.compare.soundings import Array, short_name
from fathometer.compare.summary import MIN_VALUES
from fathometer.errors import InputError
from fathometer.report.blocks import blocks_of
from fathometer.report.figures.depth_axis import mark_blocks, name_depth
from fathometer.report.figures.strip import draw_strip
from fathometer.report.figures.style import (
    BLUE,
    GREY,
    RED,
    WIDTHS,
    Columns,
    column_figure,
    for_print,
    legend_above,
    letters_in,
    look,
    plain,
    words,
)
from fathometer.results.sounding import Sounding

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@for_print
def plot_signature(
    sounding: Sounding,
    gauge: str = "affinity",
    label: str | None = None,
    *,
    columns: Columns = 2,
    strip: bool = False,
    distribution: bool = False,
) -> Figure:
    """A gauge at every site, with one standard deviation over batches as error bar.

    Points are coloured by operator, and blocks of the network stand on bands. A site without a finite value
    is a cross on the axis.

    Args:
        sounding: what was measured.
        gauge: what to show.
        label: of the network; its name if left out.
        columns: 1 or 2, the width in columns of a page.
        strip: the sites below as a strip, coloured by value.
        distribution: a histogram beside, with two modes marked where there are two.
    """
    mean, std = values_of(sounding, gauge)
    figure = column_figure(columns, (2.5 if columns == 1 else 2.9) + 0.3 * strip)
    beside = 0.26 if columns == 1 else 0.18
    grid = figure.subplots(
        1 + strip,
        1 + distribution,
        sharex="col",
        squeeze=False,
        height_ratios=[1, 0.09][: 1 + strip],
        width_ratios=[1, beside][: 1 + distribution],
    )
    axes = grid[0, 0]
    mark_blocks(axes, blocks_of(sounding.sites))
    handles = _points(axes, sounding, mean, std)
    axes.set_ylabel(words(gauge))
    axes.set_xlim(-0.6, len(mean) - 0.4)
    reach_one(axes, gauge)
    room = WIDTHS[columns] * (0.78 if distribution else 1)
    name = label if label is not None else short_name(sounding)
    axes.set_title(plain(name, letters_in(room - 0.7, 8)), loc="left")
    if strip:
        draw_strip(grid[1, 0], mean, blocks_of(sounding.sites))
        axes.tick_params("x", length=0)
    name_depth(grid[-1, 0], sounding.sites, room, marks=not strip)
    if distribution:
        _histogram(grid[0, 1], axes, mean[np.isfinite(mean)])
        if strip:
            grid[1, 1].set_visible(False)
    legend_above(figure, handles)
    return figure


def values_of(sounding: Sounding, gauge: str) -> tuple[Array, Array]:
    """Mean and standard deviation over batches at every site; what is not finite is NaN."""
    mean, std = (part.to_numpy(float).copy() for part in (sounding.mean(gauge), sounding.std(gauge)))
    mean[~np.isfinite(mean)] = np.nan
    std[~np.isfinite(std)] = 0.0
    if np.isnan(mean).all():
        raise InputError(f"{gauge!r} has no finite value at any site; choose another gauge")
    return mean, std


def reach_one(axes: Axes, gauge: str) -> None:
    """An axis of affinity scores ends a little above 1, which is affine."""
    if gauge.startswith("affinity"):
        low = axes.get_ylim()[0]
        axes.set_ylim(low, 1 + 0.03 * (1 - low))


def point_size(count: int) -> float:
    """Of a marker among so many, in points."""
    return float(np.clip(4.0 * (40 / max(count, 1)) ** 0.5, 1.3, 4.0))


def _points(axes: Axes, sounding: Sounding, mean: Array, std: Array) -> list[Artist]:
    """The line, the points of each operator, and what a legend needs to say of them."""
    from matplotlib.lines import Line2D

    places, size = np.arange(len(mean)), point_size(len(mean))
    axes.plot(places, mean, color=GREY, linewidth=0.8 if len(mean) < 150 else 0.4, zorder=1)
    operators = list(dict.fromkeys(site.operator for site in sounding.sites))
    handles: list[Artist] = []
    for number, operator in enumerate(operators):
        own = np.array([site.operator == operator for site in sounding.sites])
        colour, marker = look(number)["color"], look(number)["marker"]
        axes.errorbar(
            places[own],
            mean[own],
            yerr=std[own],
            linestyle="",
            color=colour,
            marker=marker,
            markersize=size,
            markeredgewidth=0,
            elinewidth=size / 5,
            label=plain(operator),
        )
        handle = Line2D([], [], linestyle="", color=colour, marker=marker, markersize=4)
        handle.set_label(plain(operator))
        handles.append(handle)
    missing = places[np.isnan(mean)]
    if len(missing):
        below = axes.get_xaxis_transform()
        cross = axes.plot(missing, [0.02] * len(missing), "x", color=RED, markersize=4, transform=below)[0]
        cross.set_label("no finite value")
        handles.append(cross)
    return handles if len(handles) > 1 else []


def _histogram(axes: Axes, beside: Axes, values: Array) -> None:
    """How often each value occurs, on the same scale as the picture beside."""
    low, high = float(values.min()), float(values.max())
    edges = np.linspace(low, high if high > low else low + 1e-6, 21).tolist()
    axes.hist(values, edges, color=BLUE, orientation="horizontal")
    axes.set_ylim(beside.get_ylim())
    axes.tick_params("y", labelleft=False)
    axes.tick_params("x", labelbottom=True)
    axes.set_title("sites")
    if len(values) >= MIN_VALUES:
        modes = two_modes(values)
        for mode in (modes.low, modes.high) if modes.clear else ():
            axes.axhline(mode, color=RED, linewidth=0.8, linestyle="--")
