"""Soundings along depth: one with its strip and distribution, several over each other or as strips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fathometer.capture.sites import Site
from fathometer.compare import by_name
from fathometer.compare.soundings import Array, Soundings, short_name
from fathometer.errors import InputError
from fathometer.report.blocks import Block, blocks_of, spaced_blocks
from fathometer.report.figures.style import (
    BLUE,
    COLOUR_MAP,
    DARK,
    GREY,
    LIGHT_GREY,
    MARGIN,
    PALETTE,
    RED,
    SMALL_SIZE,
    VERTICAL_NAME_WIDTH,
    WIDTHS,
    Columns,
    axis_label,
    column_figure,
    for_print,
    legend_above,
    legend_line,
    name_series,
    plain_text,
    series_style,
    sum_marks,
    title_left,
    width_of,
)
from fathometer.report.tables import Along, clear_modes, signature_table
from fathometer.results.sounding import Sounding

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LONGEST = 26  # letters of a name that still fits under an axis
_NUMBER = 0.24  # inches that a number in a cell takes


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
    """Plot a gauge at every site, with one standard deviation over batches as error bar.

    Points are coloured by operator, and every other block of the network is shaded. In a residual network,
    marks are filled after a residual sum and open elsewhere. A site without a finite value is a cross on the
    axis.

    Args:
        sounding: what was measured.
        gauge: what to show.
        label: the title; the name of the network if left out.
        columns: 1 or 2, the width in columns of a page.
        strip: draw the sites below as a strip, coloured by value.
        distribution: draw a histogram beside, with its two modes if it has two.
    """
    (sounding,) = by_name([sounding], gauge).values()
    table, blocks = finite_signatures(sounding, gauge), blocks_of(sounding.sites)
    figure = column_figure(columns, (2.5 if columns == 1 else 2.9) + 0.3 * strip)
    grid = figure.subplots(
        1 + strip,
        1 + distribution,
        sharex="col",
        squeeze=False,
        height_ratios=[1, 0.09][: 1 + strip],
        width_ratios=[1, 0.26 if columns == 1 else 0.18][: 1 + distribution],
    )
    axes = grid[0, 0]
    shade_blocks(axes, blocks)
    handles = _points(axes, table)
    axes.set_ylabel(axis_label(gauge))
    axes.set_xlim(-0.6, len(table) - 0.4)
    extend_to_one(axes, gauge)
    room = WIDTHS[columns] * (0.78 if distribution else 1)
    title_left(axes, short_name(sounding) if label is None else label, room - 0.7)
    if strip:
        _cells(grid[1, 0], table["mean"].to_numpy(), blocks, room / len(table), cmap=COLOUR_MAP)
        axes.tick_params("x", length=0)
    name_sites(grid[-1, 0], sounding.sites, room, marks=not strip)
    if distribution:
        _histogram(grid[0, 1], axes, table["mean"].dropna().to_numpy())
        if strip:
            grid[1, 1].set_visible(False)
    legend_above(figure, [*(handles if len(handles) > 1 else []), *sum_marks(table["after_sum"])])
    return figure


@for_print
def plot_overlay(
    soundings: Soundings, gauge: str = "affinity", *, along: Along = "depth", columns: Columns = 2
) -> Figure:
    """Plot several soundings over each other, with one standard deviation over batches as error bar.

    With `along="depth"` each network reaches from its first site to its last; with `along="dtw"` every site
    is at the mean depth of the sites of the first network that it is aligned with. In a residual network,
    marks are filled after a residual sum and open elsewhere.
    """
    table = finite_signatures(soundings, gauge, along)
    names = list(dict.fromkeys(table["network"]))
    figure = column_figure(columns, 2.6 if columns == 1 else 3.0)
    axes = figure.subplots()
    for number, (_, own) in enumerate(table.groupby("network", sort=False)):
        draw_error_bars(axes, own["depth"], own["mean"], own["std"], number, open_marks(own["after_sum"]))
    axes.set_ylabel(axis_label(gauge))
    extend_to_one(axes, gauge)
    axes.set_xlabel("relative depth" if along == "depth" else f"depth in {plain_text(names[0], 30)}, by DTW")
    name_series(figure, names, marks=sum_marks(table["after_sum"]))
    return figure


@for_print
def plot_strip(soundings: Soundings, gauge: str = "affinity", *, columns: Columns = 2) -> Figure:
    """Draw the sites as cells coloured by a gauge, darker where it is lower.

    One network has its blocks under it and, where it has several operators, a line of their colours. Several
    networks have a row each, of equal width.
    """
    named = by_name(soundings, gauge)
    table = signature_table(named, gauge)
    low, high = (table["mean"].min(), table["mean"].max()) if table["mean"].notna().any() else (0.0, 1.0)
    scale: dict[str, Any] = {"vmin": low, "vmax": high if high > low else low + 1e-6, "cmap": COLOUR_MAP}
    if len(named) == 1:
        ((name, sounding),) = named.items()
        figure = column_figure(columns, 2.0)
        axes = figure.subplots()
        _one_strip(axes, sounding, table, WIDTHS[columns] - 0.15, scale)
        operators = list(dict.fromkeys(table["operator"]))
        if len(operators) > 1:
            name_series(figure, operators, linewidth=3, marker="", linestyle="-")
        title_left(axes, name, WIDTHS[columns] - 0.1)
    else:
        figure = column_figure(columns, 1.0 + 0.2 * len(named))
        axes = figure.subplots()
        for place, (_, own) in enumerate(table.groupby("network", sort=False)):
            edges = np.linspace(0, 1, len(own) + 1)
            axes.pcolormesh(edges, [place - 0.4, place + 0.4], own["mean"].to_numpy()[None], **scale)
        axes.set_yticks(range(len(named)), [plain_text(name, 24) for name in named])
        axes.set(xlim=(0, 1), xlabel="relative depth", ylim=(len(named) - 0.5, -0.5))
        axes.spines[:].set_visible(False)
        axes.tick_params("y", length=0)
    low_bar: dict[str, Any] = {"location": "bottom", "shrink": 0.5, "aspect": 30}
    cells, pad = axes.collections[0], 0.08 / figure.get_figheight()
    figure.colorbar(cells, ax=axes, label=axis_label(gauge), pad=pad, **low_bar).outline.set_visible(False)
    return figure


def _one_strip(
    axes: Axes, sounding: Sounding, table: pd.DataFrame, width: float, scale: dict[str, Any]
) -> None:
    """Draw one network into so many inches, with the values in the cells where they fit."""
    values, blocks, room = table["mean"].to_numpy(), blocks_of(sounding.sites), width / len(table)
    _cells(axes, values, blocks, room, **scale)
    if room >= _NUMBER:
        middle = (scale["vmin"] + scale["vmax"]) / 2
        centred: Any = {"ha": "center", "va": "center", "fontsize": SMALL_SIZE}
        for place, value in enumerate(values):
            axes.text(place, 0.5, f"{value:.2f}", color="white" if value < middle else DARK, **centred)
    operators = list(dict.fromkeys(table["operator"]))
    if len(operators) > 1:
        colours = [PALETTE[operators.index(operator) % len(PALETTE)] for operator in table["operator"]]
        axes.bar(table["order"], -0.14, 1, bottom=-0.06, color=colours)
    name_blocks(axes, blocks, room)
    axes.set_xlim(-0.5, len(table) - 0.5)


def finite_signatures(soundings: Sounding | Soundings, gauge: str, along: Along = "depth") -> pd.DataFrame:
    """Return the `signature_table`; an error where a network has no finite value."""
    table = signature_table(soundings, gauge, along)
    if table.groupby("network")["mean"].count().min() == 0:
        raise InputError(f"{gauge!r} has no finite value at any site; choose another gauge")
    return table


def draw_error_bars(
    axes: Axes, x: Any, mean: Any, std: Any, number: int, is_open: Any = (), **settings: Any
) -> None:
    """Draw a line with error bars in the style of series `number`, thinner the more points it has.

    Marks are filled, or `is_open`.
    """
    size = point_size(len(mean))
    style = series_style(number) | {"markersize": size, "linewidth": size / 4, "elinewidth": size / 6}
    x, mean, std = (np.asarray(values, float) for values in (x, mean, std))
    axes.errorbar(x, mean, yerr=std, **(style | settings))
    if np.any(is_open):
        hollow = {"color": style["color"], "marker": style["marker"], "markersize": size, "linestyle": ""}
        chosen = np.asarray(is_open, bool)
        axes.plot(x[chosen], mean[chosen], mfc="white", mew=size / 6 + 0.2, zorder=4, **hollow)


def open_marks(after_sum: pd.Series[bool]) -> pd.Series[bool]:
    """Return which marks of a network are open: if it has residual sums, those of sites not after one."""
    return ~after_sum & bool(after_sum.any())


def extend_to_one(axes: Axes, gauge: str) -> None:
    """Let an axis of affinity scores end a little above 1, with as much room below the lowest."""
    if gauge.startswith("affinity"):
        low = axes.get_ylim()[0]
        room = 0.03 * (1 - low)
        axes.set_ylim(low - room, 1 + room)


def point_size(count: int) -> float:
    """Return the size of a marker among so many, in points."""
    return float(np.clip(4.0 * (40 / max(count, 1)) ** 0.5, 1.3, 4.0))


def shade_blocks(axes: Axes, blocks: Sequence[Block]) -> None:
    """Shade every other block; site i reaches from i − ½ to i + ½."""
    for block in blocks[1::2]:
        axes.axvspan(block.start - 0.5, block.stop - 0.5, color=LIGHT_GREY, linewidth=0, zorder=-10)


def name_sites(axes: Axes, sites: Sequence[Site], width: float, *, marks: bool = True) -> None:
    """Write the names of all sites under the axis if they fit into so many inches, else those of blocks."""
    room = (width - MARGIN) / max(len(sites), 1)
    names = [plain_text(site.name) for site in sites]
    if room >= VERTICAL_NAME_WIDTH and max(map(len, names), default=0) <= _LONGEST:
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=SMALL_SIZE)
        axes.tick_params("x", length=2.5 if marks else 0)
        axes.set_xlabel("site, in order of depth")
        return
    blocks = blocks_of(sites)
    if len(blocks) < 2:
        axes.set_xlabel("site, in order of depth")
    else:
        name_blocks(axes, blocks, room)
        axes.set_xlabel("block, in order of depth")


def name_blocks(axes: Axes, blocks: Sequence[Block], room: float) -> None:
    """Write the labels of blocks at their middles; where two would touch, the larger block keeps its label.

    Site i is at i, and has `room` inches.
    """
    labels = {block: plain_text(block.label, _LONGEST) for block in blocks}
    flat = all(width_of(labels[block], SMALL_SIZE) + 0.05 <= room * len(block) for block in blocks)
    shown = blocks if flat else spaced_blocks(blocks, VERTICAL_NAME_WIDTH / room)
    places, texts = [block.middle for block in shown], [labels[block] for block in shown]
    axes.set_xticks(places, texts, rotation=0 if flat else 90, fontsize=SMALL_SIZE)
    axes.tick_params("x", length=0)


def _points(axes: Axes, table: pd.DataFrame) -> list[Artist]:
    """Draw the line and the points of each operator; return their legend."""
    count, size = len(table), point_size(len(table))
    axes.plot(table["order"], table["mean"], color=GREY, linewidth=0.8 if count < 150 else 0.4, zorder=1)
    bare: dict[str, Any] = {"linestyle": "", "markersize": size, "markeredgewidth": 0, "elinewidth": size / 5}
    handles: list[Artist] = []
    is_open = open_marks(table["after_sum"])
    for number, (operator, own) in enumerate(table.groupby("operator", sort=False)):
        values = (own["order"], own["mean"], own["std"], number, is_open[own.index])
        draw_error_bars(axes, *values, label=plain_text(operator), **bare)
        handles.append(legend_line(number, str(operator), linestyle="", markersize=4))
    missing = table.loc[table["mean"].isna(), "order"]
    if len(missing):
        below = axes.get_xaxis_transform()
        (cross,) = axes.plot(missing, [0.02] * len(missing), "x", color=RED, markersize=4, transform=below)
        cross.set_label("no finite value")
        handles.append(cross)
    return handles


def _histogram(axes: Axes, beside: Axes, values: Array) -> None:
    """Draw how often each value occurs, on the same scale as the picture beside."""
    low, high = float(values.min()), float(values.max())
    edges = np.linspace(low, high if high > low else low + 1e-6, 21).tolist()
    axes.hist(values, edges, color=BLUE, orientation="horizontal")
    axes.set_ylim(beside.get_ylim())
    axes.tick_params("y", labelleft=False)
    axes.tick_params("x", labelbottom=True)
    axes.set_title("sites")
    modes = clear_modes(values)
    for mode in (modes.low, modes.high) if modes else ():
        axes.axhline(mode, color=RED, linewidth=0.8, linestyle="--")


def _cells(axes: Axes, values: Array, blocks: Sequence[Block], room: float, **scale: Any) -> None:
    """Draw a row of cells, each `room` inches wide, white between blocks."""
    axes.pcolormesh(np.arange(len(values) + 1) - 0.5, [0, 1], values[None], **scale)
    for block in blocks[1:]:
        axes.axvline(block.start - 0.5, color="white", linewidth=min(1.5, 12 * room))
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
