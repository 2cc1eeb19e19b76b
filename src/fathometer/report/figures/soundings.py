"""Soundings along depth: one with its strip and distribution, several over each other or as strips."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from fathometer.capture.sites import Site
from fathometer.compare import by_name
from fathometer.compare.distance import aligned
from fathometer.compare.soundings import Array, Soundings, short_name
from fathometer.errors import InputError
from fathometer.report.blocks import Block, blocks_of
from fathometer.report.figures.style import (
    BLUE,
    DARK,
    GREY,
    LIGHT_GREY,
    MARGIN,
    PALETTE,
    RED,
    SCALE,
    SMALL_SIZE,
    UPRIGHT,
    WIDTHS,
    Columns,
    column_figure,
    for_print,
    label_of,
    legend_above,
    legend_line,
    look,
    name_series,
    plain,
    title_left,
    width_of,
)
from fathometer.report.tables import clear_modes, relative_depth, signature_table
from fathometer.results.sounding import Sounding

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Along: TypeAlias = Literal["depth", "dtw"]

_LONGEST = 26  # letters of a name that still fits under an axis
_CELL = 0.045  # inches that a cell of a strip has at least
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

    Points are coloured by operator, and every other block of the network is shaded. A site without a finite
    value is a cross on the axis.

    Args:
        sounding: what was measured.
        gauge: what to show.
        label: the title; the name of the network if left out.
        columns: 1 or 2, the width in columns of a page.
        strip: draw the sites below as a strip, coloured by value.
        distribution: draw a histogram beside, with its two modes if it has two.
    """
    table, blocks = finite_signature(sounding, gauge), blocks_of(sounding.sites)
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
    axes.set_ylabel(label_of(gauge))
    axes.set_xlim(-0.6, len(table) - 0.4)
    reach_one(axes, gauge)
    room = WIDTHS[columns] * (0.78 if distribution else 1)
    title_left(axes, short_name(sounding) if label is None else label, room - 0.7)
    if strip:
        _cells(grid[1, 0], table["mean"].to_numpy(), range(len(table)), blocks, 1.0, {"cmap": SCALE})
        axes.tick_params("x", length=0)
    name_sites(grid[-1, 0], sounding.sites, room, marks=not strip)
    if distribution:
        _histogram(grid[0, 1], axes, table["mean"].dropna().to_numpy())
        if strip:
            grid[1, 1].set_visible(False)
    legend_above(figure, handles if len(handles) > 1 else [])
    return figure


def plot_soundings(
    soundings: Sequence[Sounding],
    gauge: str = "affinity",
    labels: Sequence[str] | None = None,
    *,
    columns: Columns = 2,
) -> Figure:
    """Plot one sounding (`plot_signature`), or several over relative depth (`plot_overlay`).

    Without `labels`, the networks have their own names.
    """
    if not soundings:
        raise InputError("expected at least one sounding to plot, got none")
    if len(soundings) == 1:
        return plot_signature(soundings[0], gauge, labels[0] if labels else None, columns=columns)
    named = dict(zip(labels, soundings, strict=True)) if labels else soundings
    return plot_overlay(named, gauge, columns=columns)


@for_print
def plot_overlay(
    soundings: Soundings, gauge: str = "affinity", *, along: Along = "depth", columns: Columns = 2
) -> Figure:
    """Plot several soundings over each other, with one standard deviation over batches as error bar.

    With `along="depth"` each network reaches from its first site to its last; with `along="dtw"` every site
    is at the mean depth of the sites of the first network that it is aligned with.
    """
    named = by_name(soundings)
    reference = next(iter(named))
    figure = column_figure(columns, 2.6 if columns == 1 else 3.0)
    axes = figure.subplots()
    for number, (name, sounding) in enumerate(named.items()):
        table = finite_signature(sounding, gauge)
        depth = table["depth"].to_numpy()
        if along == "dtw" and name != reference:
            depth = _warped(named[reference], sounding, gauge)
        draw_errors(axes, depth, table["mean"], table["std"], number)
    axes.set_ylabel(label_of(gauge))
    reach_one(axes, gauge)
    axes.set_xlabel("relative depth" if along == "depth" else f"depth in {plain(reference, 30)}, by DTW")
    name_series(figure, named)
    return figure


@for_print
def plot_strip(soundings: Soundings, gauge: str = "affinity", *, columns: Columns = 2) -> Figure:
    """Draw the sites as cells coloured by a gauge, darker where it is lower.

    One network takes as many rows as it needs, with its blocks under them and, where it has several
    operators, a line of their colours under the cells. Several networks have a row each, of equal width.
    """
    named = by_name(soundings)
    table = signature_table(named, gauge)
    low, high = (table["mean"].min(), table["mean"].max()) if table["mean"].notna().any() else (0.0, 1.0)
    scale: dict[str, Any] = {"vmin": low, "vmax": high if high > low else low + 1e-6, "cmap": SCALE}
    if len(named) == 1:
        ((name, sounding),) = named.items()
        figure, every = _one_strip(sounding, table, name, scale, columns)
    else:
        figure = column_figure(columns, 1.0 + 0.2 * len(named))
        axes = figure.subplots()
        for place, name in enumerate(named):
            row = table.loc[table["network"] == name, "mean"].to_numpy()
            axes.pcolormesh(np.linspace(0, 1, len(row) + 1), [place - 0.4, place + 0.4], row[None], **scale)
        axes.set_yticks(range(len(named)), [plain(name, 24) for name in named])
        axes.set(xlim=(0, 1), xlabel="relative depth", ylim=(len(named) - 0.5, -0.5))
        axes.spines[:].set_visible(False)
        axes.tick_params("y", length=0)
        every = [axes]
    low_bar: dict[str, Any] = {"location": "bottom", "shrink": 0.5, "aspect": 30}
    cells, pad = every[0].collections[0], 0.08 / figure.get_figheight()
    figure.colorbar(cells, ax=every, label=label_of(gauge), pad=pad, **low_bar).outline.set_visible(False)
    return figure


def _one_strip(
    sounding: Sounding, table: pd.DataFrame, name: str, scale: dict[str, Any], columns: Columns
) -> tuple[Figure, list[Axes]]:
    blocks, width = blocks_of(sounding.sites), WIDTHS[columns] - 0.15
    rows = _rows(blocks, int(width / _CELL))
    longest = max(map(len, rows))
    operators = list(dict.fromkeys(table["operator"]))
    name_height = min(max(width_of(block.label, SMALL_SIZE) for block in blocks) + 0.1, 1.2)
    figure = column_figure(columns, 0.8 + len(rows) * (0.3 + name_height) + 0.2 * (len(operators) > 1))
    every = figure.subplots(len(rows), 1, squeeze=False)[:, 0]
    for axes, part in zip(every, rows, strict=True):
        inside = [b.cut(part.start, part.stop) for b in blocks if b.start < part.stop and b.stop > part.start]
        _cells(axes, table["mean"].to_numpy(), part, inside, width / longest, scale)
        if len(operators) > 1:
            own = [PALETTE[operators.index(table["operator"][place]) % len(PALETTE)] for place in part]
            axes.bar(list(part), -0.14, 1, bottom=-0.06, color=own)
        name_blocks(axes, inside, width / longest)
        axes.set_xlim(part.start - 0.5, part.start - 0.5 + longest)
    title_left(every[0], name, WIDTHS[columns] - 0.1)
    if len(operators) > 1:
        name_series(figure, operators, linewidth=3, marker="", linestyle="-")
    return figure, list(every)


def finite_signature(sounding: Sounding, gauge: str) -> pd.DataFrame:
    """Return the `signature_table` of one sounding; an error where it has no finite value."""
    table = signature_table(sounding, gauge)
    if table["mean"].isna().all():
        raise InputError(f"{gauge!r} has no finite value at any site; choose another gauge")
    return table


def draw_errors(axes: Axes, x: Any, mean: Any, std: Any, number: int, **settings: Any) -> None:
    """Draw a line with error bars in the style of series `number`, thinner the more points it has."""
    size = point_size(len(mean))
    style = look(number) | {"markersize": size, "linewidth": size / 4, "elinewidth": size / 6}
    x, mean, std = (np.asarray(values, float) for values in (x, mean, std))
    axes.errorbar(x, mean, yerr=std, **(style | settings))


def reach_one(axes: Axes, gauge: str) -> None:
    """Let an axis of affinity scores end a little above 1."""
    if gauge.startswith("affinity"):
        low = axes.get_ylim()[0]
        axes.set_ylim(low, 1 + 0.03 * (1 - low))


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
    names = [plain(site.name) for site in sites]
    if room >= UPRIGHT and max(map(len, names), default=0) <= _LONGEST:
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=SMALL_SIZE)
        axes.tick_params("x", length=2.5 if marks else 0)
        return
    blocks = blocks_of(sites)
    if len(blocks) < 2:
        axes.set_xlabel("site, in order of depth")
    else:
        name_blocks(axes, blocks, room)


def name_blocks(axes: Axes, blocks: Sequence[Block], room: float) -> None:
    """Write the labels of blocks at their middles; where two would touch, the larger block keeps its label.

    Site i is at i, and has `room` inches.
    """
    labels = {block: plain(block.label, _LONGEST) for block in blocks}
    flat = all(width_of(labels[block], SMALL_SIZE) + 0.05 <= room * len(block) for block in blocks)
    shown: list[Block] = []
    for block in sorted(blocks, key=len, reverse=True):
        if flat or all(room * abs(block.middle - other.middle) >= UPRIGHT for other in shown):
            shown.append(block)
    shown.sort(key=lambda block: block.start)
    places, texts = [block.middle for block in shown], [labels[block] for block in shown]
    axes.set_xticks(places, texts, rotation=0 if flat else 90, fontsize=SMALL_SIZE)
    axes.tick_params("x", length=0)


def _points(axes: Axes, table: pd.DataFrame) -> list[Artist]:
    """Draw the line and the points of each operator; return their legend."""
    count, size = len(table), point_size(len(table))
    axes.plot(table["order"], table["mean"], color=GREY, linewidth=0.8 if count < 150 else 0.4, zorder=1)
    bare: dict[str, Any] = {"linestyle": "", "markersize": size, "markeredgewidth": 0, "elinewidth": size / 5}
    handles: list[Artist] = []
    for number, (operator, own) in enumerate(table.groupby("operator", sort=False)):
        draw_errors(axes, own["order"], own["mean"], own["std"], number, label=plain(operator), **bare)
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


def _warped(reference: Sounding, sounding: Sounding, gauge: str) -> Array:
    """Return for every site the mean relative depth of the sites in the reference it is aligned with."""
    pairs = aligned(reference, sounding, gauge, "dtw").pairs
    depth = relative_depth(len(reference.sites))[pairs[:, 0]]
    return np.asarray(np.bincount(pairs[:, 1], depth) / np.bincount(pairs[:, 1]))


def _cells(
    axes: Axes, values: Array, part: range, blocks: Sequence[Block], room: float, scale: dict[str, Any]
) -> None:
    """Draw a row of cells, white between blocks, with their values in them where `room` inches suffice."""
    edges = np.arange(part.start, part.stop + 1) - 0.5
    axes.pcolormesh(edges, [0, 1], values[None, part.start : part.stop], **scale)
    for block in blocks[1:]:
        axes.axvline(block.start - 0.5, color="white", linewidth=min(1.5, 12 * room))
    if "vmin" in scale and room >= _NUMBER:
        middle = (scale["vmin"] + scale["vmax"]) / 2
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL_SIZE}
        for place in part:
            colour = "white" if values[place] < middle else DARK
            axes.text(place, 0.5, f"{values[place]:.2f}", color=colour, **style)
    axes.set_yticks([])
    axes.spines[:].set_visible(False)


def _rows(blocks: Sequence[Block], capacity: int) -> list[range]:
    """Return the sites of each row: whole blocks, or, where one is longer than a row, equal parts."""
    rows: list[range] = []
    count = blocks[-1].stop
    if max(map(len, blocks)) > capacity:
        step = math.ceil(count / math.ceil(count / capacity))
        return [range(start, min(start + step, count)) for start in range(0, count, step)]
    for block in blocks:
        if rows and block.stop - rows[-1].start <= capacity:
            rows[-1] = range(rows[-1].start, block.stop)
        else:
            rows.append(range(block.start, block.stop))
    return rows
