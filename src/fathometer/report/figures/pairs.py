"""Two soundings against each other: their alignment, and their difference along it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fathometer.compare.distance import Align, Alignment, aligned
from fathometer.compare.soundings import Soundings, by_name
from fathometer.errors import InputError
from fathometer.report.blocks import Block, blocks_of
from fathometer.report.figures.depth_axis import mark_blocks, name_blocks
from fathometer.report.figures.signature import point_size, reach_one, values_of
from fathometer.report.figures.soundings import relative_depth
from fathometer.report.figures.style import (
    BLUE,
    DARK,
    GREY,
    MARGIN,
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
    from matplotlib.figure import Figure


@for_print
def plot_alignment(
    soundings: Soundings, gauge: str = "affinity", *, by: Align = "dtw", columns: Columns = 2
) -> Figure:
    """Two soundings one above the other, and lines between the sites that answer to each other.

    Args:
        soundings: two, by name, or a list.
        gauge: what to show.
        by: `dtw`, `sites` (the same names), or `auto` (`sites` where they are the same).
        columns: 1 or 2, the width in columns of a page.
    """
    from matplotlib.patches import ConnectionPatch

    (first, one), (second, other) = _two(soundings)
    alignment = aligned(one, other, gauge, by)
    figure = column_figure(columns, 3.3 if columns == 1 else 3.8)
    top, bottom = figure.subplots(2, 1, sharex=True, sharey=True)
    panels = ((top, first, one), (bottom, second, other))
    for number, (axes, name, sounding) in enumerate(panels):
        mean, std = values_of(sounding, gauge)
        axes.errorbar(
            relative_depth(len(mean)),
            mean,
            yerr=std,
            color=look(number)["color"],
            marker=look(number)["marker"],
            markersize=point_size(len(mean)),
            linewidth=point_size(len(mean)) / 4,
            elinewidth=point_size(len(mean)) / 6,
            zorder=3,
        )
        title = plain(name, letters_in(WIDTHS[columns] - 0.7, 8))
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # lines pass behind it
        axes.set_title(title, loc="left", color=look(number)["color"], bbox=ground)
    reach_one(top, gauge)
    x, y = relative_depth(len(one.sites)), relative_depth(len(other.sites))
    for (i, j), (a, b) in zip(alignment.pairs.tolist(), alignment.values, strict=True):
        line = ConnectionPatch((x[i], a), (y[j], b), "data", "data", axesA=top, axesB=bottom)
        line.set(color=GREY, linewidth=0.5, alpha=0.8, zorder=-1, gid="match")
        line.set_in_layout(False)
        figure.add_artist(line)
    for axes in (top, bottom):
        axes.patch.set_alpha(0)  # lines of the figure lie under its axes
    top.spines["bottom"].set_visible(False)
    top.tick_params("x", length=0)
    bottom.set_xlabel(f"relative depth; {_how(alignment)}")
    figure.supylabel(words(gauge), fontsize=8)
    return figure


@for_print
def plot_difference(
    soundings: Soundings, gauge: str = "affinity", *, by: Align = "auto", columns: Columns = 2
) -> Figure:
    """The second sounding less the first, along their alignment, under both of them.

    Error bars are one standard deviation over batches, of the difference sqrt(s₁² + s₂²). The blocks are
    those of the first network.

    Args:
        soundings: two, by name, or a list.
        gauge: what to show.
        by: `auto` (`sites` where both have the same, else `dtw`), `sites` or `dtw`.
        columns: 1 or 2, the width in columns of a page.
    """
    from matplotlib.lines import Line2D

    (first, one), (second, other) = _two(soundings)
    alignment = aligned(one, other, gauge, by)
    pairs, difference = alignment.pairs, alignment.difference
    stds = [values_of(sounding, gauge)[1][pairs[:, side]] for side, sounding in enumerate((one, other))]
    figure = column_figure(columns, 3.3 if columns == 1 else 3.8)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(1, 0.8))
    steps, size = np.arange(len(pairs)), point_size(len(pairs))
    handles = []
    for number, (name, std) in enumerate(zip((first, second), stds, strict=True)):
        looks = look(number) | {"markersize": size, "linewidth": size / 4}
        top.errorbar(steps, alignment.values[:, number], yerr=std, elinewidth=size / 6, **looks)
        handles.append(Line2D([], [], label=plain(name, 40), **look(number)))
    top.set_ylabel(words(gauge))
    reach_one(top, gauge)
    colours = np.where(difference < 0, BLUE, RED).tolist()
    bottom.bar(steps, difference, 0.8, color=colours)
    if len(pairs) <= 150:
        bottom.errorbar(steps, difference, yerr=np.hypot(*stds), linestyle="", color=DARK, elinewidth=0.5)
    bottom.axhline(0, color=DARK, linewidth=0.6)
    short = max(len(first), len(second)) <= 16
    bottom.set_ylabel(f"{plain(second)}\n− {plain(first)}" if short else "second − first")
    blocks = _along(blocks_of(one.sites), pairs[:, 0])
    for axes in (top, bottom):
        mark_blocks(axes, blocks)
    figure.align_ylabels()
    bottom.set_xlim(-0.6, len(pairs) - 0.4)
    if len(blocks) > 1:
        name_blocks(bottom, blocks, (WIDTHS[columns] - MARGIN) / len(pairs))
    whose = f"blocks of {plain(first, 30)}" + ("\n" if columns == 1 else "; ")
    bottom.set_xlabel((whose if len(blocks) > 1 else "") + _how(alignment))
    legend_above(figure, handles)
    return figure


def _two(soundings: Soundings) -> list[tuple[str, Sounding]]:
    named = list(by_name(soundings).items())
    if len(named) != 2:
        raise InputError(f"expected two soundings to hold against each other, got {len(named)}")
    return named


def _how(alignment: Alignment) -> str:
    if alignment.how == "sites":
        return f"the same sites, distance {alignment.distance:.3g}"
    return f"DTW distance {alignment.distance:.3g}"


def _along(blocks: Sequence[Block], places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[Block]:
    """The same blocks, counted in steps of an alignment."""
    return [
        Block(
            block.name,
            block.label,
            int(np.searchsorted(places, block.start)),
            int(np.searchsorted(places, block.stop)),
        )
        for block in blocks
    ]
