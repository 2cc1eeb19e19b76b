"""Two soundings compared site by site; residual paths; a training over its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fathometer.compare.distance import Align
from fathometer.compare.soundings import Soundings, by_name
from fathometer.errors import InputError
from fathometer.report.blocks import Block, blocks_of
from fathometer.report.figures.soundings import (
    draw_error_bars,
    extend_to_one,
    finite_signatures,
    name_blocks,
    open_marks,
    shade_blocks,
)
from fathometer.report.figures.style import (
    BLUE,
    DARK,
    GREY,
    MARGIN,
    RED,
    SMALL_SIZE,
    VERTICAL_NAME_WIDTH,
    WIDTHS,
    Columns,
    axis_label,
    column_figure,
    for_print,
    legend_above,
    name_series,
    plain_text,
    series_style,
    sum_marks,
    title_left,
)
from fathometer.report.tables import RESIDUAL_GAUGES, alignment_table, residual_path_table, step_edges
from fathometer.results.history import History
from fathometer.results.sounding import Sounding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_NAMES = 40  # names that fit beside a vertical axis


@for_print
def plot_alignment(
    soundings: Soundings, gauge: str = "affinity", *, by: Align = "dtw", columns: Columns = 2
) -> Figure:
    """Plot two soundings one above the other, with lines between the sites that are aligned.

    They are aligned by `dtw`, by `sites` (the same names), or by `auto`: `sites` if both have the same.
    """
    from matplotlib.patches import ConnectionPatch

    pairs, table = alignment_table(soundings, gauge, by), finite_signatures(soundings, gauge)
    figure = column_figure(columns, 3.3 if columns == 1 else 3.8)
    top, bottom = figure.subplots(2, 1, sharex=True, sharey=True)
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # lines pass behind the title
    for number, (axes, name) in enumerate(zip((top, bottom), pairs.attrs["names"], strict=True)):
        own = table[table["network"] == name]
        values = (own["depth"], own["mean"], own["std"], number, open_marks(own["after_sum"]))
        draw_error_bars(axes, *values, linestyle="-", zorder=3)
        title_left(axes, name, WIDTHS[columns] - 0.7, color=series_style(number)["color"], bbox=ground)
        axes.patch.set_alpha(0)  # lines of the figure are under its axes
    extend_to_one(top, gauge)
    ends = pairs[["first_depth", "first_mean", "second_depth", "second_mean"]].to_numpy(float)
    for x, y, other_x, other_y in ends:
        line = ConnectionPatch((x, y), (other_x, other_y), "data", "data", axesA=top, axesB=bottom)
        line.set(color=GREY, linewidth=0.5, alpha=0.8, zorder=-1, gid="match")
        line.set_in_layout(False)
        figure.add_artist(line)
    top.spines["bottom"].set_visible(False)
    top.tick_params("x", length=0)
    bottom.set_xlabel(f"relative depth; {_how(pairs)}")
    figure.supylabel(axis_label(gauge), fontsize=8)
    legend_above(figure, sum_marks(table["after_sum"]))
    return figure


@for_print
def plot_difference(
    soundings: Soundings, gauge: str = "affinity", *, by: Align = "auto", columns: Columns = 2
) -> Figure:
    """Plot the second sounding minus the first along their alignment, under both of them.

    Error bars are one standard deviation over batches, of the difference sqrt(s₁² + s₂²). The blocks are
    those of the first network. `by` is as in `plot_alignment`.
    """
    finite_signatures(soundings, gauge)
    pairs, named = alignment_table(soundings, gauge, by), by_name(soundings, gauge)
    first, second = named
    figure = column_figure(columns, 3.3 if columns == 1 else 3.8)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(1, 0.8))
    for number, side in enumerate(("first", "second")):
        is_open = open_marks(pairs[f"{side}_after_sum"])
        draw_error_bars(top, pairs.index, pairs[f"{side}_mean"], pairs[f"{side}_std"], number, is_open)
    top.set_ylabel(axis_label(gauge))
    extend_to_one(top, gauge)
    difference = pairs["difference"]
    bottom.bar(pairs.index, difference, 0.8, color=np.where(difference < 0, BLUE, RED).tolist())
    if len(pairs) <= 150:
        bottom.errorbar(pairs.index, difference, pairs["std"], linestyle="", color=DARK, elinewidth=0.5)
    bottom.axhline(0, color=DARK, linewidth=0.6)
    short = max(len(first), len(second)) <= 16
    bottom.set_ylabel(
        f"{plain_text(second)}\n− {plain_text(first)}" if short else f"second − first,\n{axis_label(gauge)}"
    )
    blocks = _in_steps(blocks_of(named[first].sites), pairs["first_order"])
    for axes in (top, bottom):
        shade_blocks(axes, blocks)
    figure.align_ylabels()
    bottom.set_xlim(-0.6, len(pairs) - 0.4)
    if len(blocks) > 1:
        name_blocks(bottom, blocks, (WIDTHS[columns] - MARGIN) / len(pairs))
    whose = f"blocks of {plain_text(first, 30)}" + ("\n" if columns == 1 else "; ")
    bottom.set_xlabel((whose if len(blocks) > 1 else "") + _how(pairs))
    name_series(figure, named, marks=sum_marks(pairs["first_after_sum"] | pairs["second_after_sum"]))
    return figure


@for_print
def plot_path(
    paths: Sequence[Sounding], labels: Sequence[str] | None = None, *, columns: Columns = 2
) -> Figure:
    """Plot residual paths: stable rank, cost of identity and speed along the blocks, with error bars.

    The stable rank begins with the input of the first block; a ring marks its lowest value. Several paths are
    drawn over each other, by name where they have the same blocks, else by relative depth. Without `labels`,
    the lines have the names of the networks.
    """
    from matplotlib.lines import Line2D

    if not paths:
        raise InputError("expected at least one path to plot, got none")
    for path in paths:
        if not is_path(path):
            raise InputError(
                f"expected what residual_path returns, got a sounding of {', '.join(path.gauges)}"
            )
    labels = labels or [str(path.provenance.model.get("name", "")) for path in paths]
    table = residual_path_table(paths)
    panels = list(dict.fromkeys(table["gauge"]))
    names = [[site.name for site in path.sites] for path in paths]
    alike = all(other == names[0] for other in names)
    figure = column_figure(columns, (1.15 if columns == 1 else 1.5) * len(panels) + 0.7)
    every = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    ring: Any = {"marker": "o", "linestyle": "", "markersize": 8, "fillstyle": "none"}
    for axes, gauge in zip(every, panels, strict=True):
        for number, own in table[table["gauge"] == gauge].groupby("number"):
            x, style = own["order" if alike else "depth"], series_style(int(number))
            axes.errorbar(x, own["mean"], yerr=own["std"], elinewidth=0.6, **style)
            if gauge == "stable_rank":
                lowest = own["mean"].iloc[1:].idxmin()  # 0 is the input
                axes.plot(x[lowest], own["mean"][lowest], color=style["color"], **ring)
        axes.set_ylabel(RESIDUAL_GAUGES[gauge])
        axes.set_ylim(0, 1.06 * axes.get_ylim()[1])  # room for the highest marker
    if not alike:
        every[-1].set_xlabel("relative depth")
    elif (WIDTHS[columns] - MARGIN) / (len(names[0]) + 1) < VERTICAL_NAME_WIDTH:
        every[-1].set_xlabel("block")
    else:
        shown = ["input", *(plain_text(name, 30) for name in names[0])]
        every[-1].set_xticks(range(len(shown)), shown, rotation=90, fontsize=SMALL_SIZE)
    mark = Line2D([], [], color=DARK, label="lowest stable rank after a block", **ring)
    if len(paths) == 1:
        title_left(every[0], labels[0], WIDTHS[columns] - 0.7)
        legend_above(figure, [mark])
    else:
        name_series(figure, labels, marks=[mark])
    return figure


def is_path(sounding: Sounding) -> bool:
    """Return whether it is what `residual_path` returns."""
    return {"stable_rank", "stable_rank_in", "speed"} <= set(sounding.gauges)


@for_print
def plot_history(history: History, gauge: str = "affinity", *, columns: Columns = 2) -> Figure:
    """Plot a gauge over a training, a row for each site; beside it the first and the last sounding.

    A column of the map reaches half-way to the steps measured before and after it. In one column of a page
    the second picture is below the first.
    """
    table = history.table(gauge)
    names, depth = [str(name) for name in table.columns], np.arange(len(table.columns))
    height = max(2.4, 1.2 + 0.16 * min(len(names), _MAX_NAMES))
    figure = column_figure(columns, 2 * height if columns == 1 else height)
    shape: Any = {"nrows": 2} if columns == 1 else {"ncols": 2, "width_ratios": (2, 1)}
    heat, lines = figure.subplots(sharey=True, **shape)
    highest = 1.0 if gauge.startswith("affinity") else None
    edges = step_edges(history.steps), np.arange(len(names) + 1) - 0.5
    cells = heat.pcolormesh(*edges, table.to_numpy().T, vmax=highest)
    figure.colorbar(cells, ax=heat, label=axis_label(gauge), pad=0.01)
    heat.set_xlabel("step")
    if len(history.steps) > 1:
        heat.set_xlim(history.steps[0], history.steps[-1])
    heat.invert_yaxis()
    if len(names) > _MAX_NAMES:
        heat.set_ylabel("site, in order of depth")
    else:
        heat.set_yticks(depth, [plain_text(name, 30) for name in names], fontsize=SMALL_SIZE)
    for row, colour, style in ((0, BLUE, "--"), (-1, RED, "-")):
        label = f"step {history.steps[row]}"
        lines.plot(table.iloc[row], depth, color=colour, linestyle=style, marker="o", label=label)
    lines.set_xlabel(axis_label(gauge))
    lines.legend()
    figure.suptitle(plain_text(history.soundings[0].provenance.model.get("name", "")))
    return figure


def _how(pairs: pd.DataFrame) -> str:
    how = "same sites, distance" if pairs.attrs["how"] == "sites" else "DTW distance"
    return f"{how} {pairs.attrs['distance']:.3g}"


def _in_steps(blocks: Sequence[Block], places: pd.Series[int]) -> list[Block]:
    """Return the same blocks, counted in steps of an alignment."""
    edge = places.to_numpy().searchsorted
    return [Block(b.name, b.label, int(edge(b.start)), int(edge(b.stop))) for b in blocks]
