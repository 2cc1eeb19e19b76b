"""The architecture as a strip: a cell for each site, coloured by its score, block beside block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fathometer.compare.soundings import Array, Soundings, by_name
from fathometer.report.blocks import Block, blocks_of
from fathometer.report.figures.depth_axis import name_blocks
from fathometer.report.figures.style import (
    DARK,
    PALETTE,
    SCALE,
    SMALL_SIZE,
    WIDTHS,
    Columns,
    column_figure,
    for_print,
    legend_above,
    letters_in,
    look,
    plain,
    width_of,
    words,
)
from fathometer.results.sounding import Sounding

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CELL = 0.045  # inches that a cell has at least
_HEIGHT = 0.3  # inches of a row
_NUMBER = 0.24  # inches that a value takes
_MARGIN = 0.15  # inches beside a row


@for_print
def plot_strip(soundings: Soundings, gauge: str = "affinity", *, columns: Columns = 2) -> Figure:
    """The sites as cells coloured by a gauge, a tone darker where it is lower.

    One network is set in as many rows as it needs, with its blocks under them and, where it has several
    operators, a line of their colours under the cells. Several networks have a row each, of equal width.

    Args:
        soundings: by name, or a list.
        gauge: what to show.
        columns: 1 or 2, the width in columns of a page.
    """
    named = by_name(soundings)
    values = {name: sounding.mean(gauge).to_numpy(float) for name, sounding in named.items()}
    scale = _scale(list(values.values()))
    if len(named) == 1:
        name = next(iter(named))
        return _one(named[name], values[name], name, gauge, scale, columns)
    figure = column_figure(columns, 1.0 + 0.2 * len(named))
    axes = figure.subplots()
    for place, row in enumerate(values.values()):
        edges = np.linspace(0, 1, len(row) + 1)
        axes.pcolormesh(edges, [place - 0.4, place + 0.4], row[None], **scale)
    axes.set_yticks(range(len(named)), [plain(name, 24) for name in named])
    axes.set_ylim(len(named) - 0.5, -0.5)
    axes.set(xlim=(0, 1), xlabel="relative depth")
    axes.spines[:].set_visible(False)
    axes.tick_params("y", length=0)
    _colour_bar(figure, [axes], gauge)
    return figure


def draw_strip(axes: Axes, values: Array, blocks: Sequence[Block]) -> None:
    """One row of cells, white between blocks."""
    edges = np.arange(len(values) + 1) - 0.5
    axes.pcolormesh(edges, [0, 1], values[None], cmap=SCALE)
    for block in blocks[1:]:
        axes.axvline(block.start - 0.5, color="white", linewidth=1)
    axes.set_yticks([])
    axes.spines[:].set_visible(False)


def _one(
    sounding: Sounding, values: Array, name: str, gauge: str, scale: dict[str, Any], columns: Columns
) -> Figure:
    from matplotlib.lines import Line2D

    blocks = blocks_of(sounding.sites)
    capacity = int((WIDTHS[columns] - _MARGIN) / _CELL)
    rows = _rows(blocks, capacity)
    most = max(len(part) for part in rows)
    room = (WIDTHS[columns] - _MARGIN) / most
    operators = list(dict.fromkeys(site.operator for site in sounding.sites))
    named = max(width_of(block.label, SMALL_SIZE) for block in blocks) + 0.1
    height = 0.8 + len(rows) * (_HEIGHT + min(named, 1.2)) + 0.2 * (len(operators) > 1)
    figure = column_figure(columns, height)
    every = figure.subplots(len(rows), 1, squeeze=False)[:, 0]
    for axes, part in zip(every, rows, strict=True):
        _cells(axes, values, part, scale, numbers=room >= _NUMBER)
        if len(operators) > 1:
            own = [operators.index(sounding.sites[place].operator) % len(PALETTE) for place in part]
            axes.bar(list(part), -0.14, 1, bottom=-0.06, color=[PALETTE[number] for number in own])
        inside = _cut(blocks, part.start, part.stop)
        for block in inside[1:]:
            axes.axvline(block.start - 0.5, color="white", linewidth=min(1.5, 12 * room))
        name_blocks(axes, inside, room)
        axes.set_xlim(part.start - 0.5, part.start - 0.5 + most)
    every[0].set_title(plain(name, letters_in(WIDTHS[columns] - 0.1, 8)), loc="left")
    _colour_bar(figure, list(every), gauge)
    if len(operators) > 1:
        looks = [(plain(operator), look(number)["color"]) for number, operator in enumerate(operators)]
        legend_above(figure, [Line2D([], [], color=colour, linewidth=3, label=o) for o, colour in looks])
    return figure


def _cells(axes: Axes, values: Array, part: range, scale: dict[str, Any], *, numbers: bool) -> None:
    """A row of cells, with their values in them where there is room."""
    edges = np.arange(part.start, part.stop + 1) - 0.5
    axes.pcolormesh(edges, [0, 1], values[None, part.start : part.stop], **scale)
    middle = (scale["vmin"] + scale["vmax"]) / 2
    for place in part if numbers else ():
        colour = "white" if values[place] < middle else DARK
        axes.text(
            place, 0.5, f"{values[place]:.2f}", ha="center", va="center", fontsize=SMALL_SIZE, color=colour
        )
    axes.set_yticks([])
    axes.spines[:].set_visible(False)


def _colour_bar(figure: Figure, every: list[Axes], gauge: str) -> None:
    bar = figure.colorbar(
        every[0].collections[0],
        ax=every,
        location="bottom",
        label=words(gauge),
        shrink=0.5,
        aspect=30,
        pad=0.08 / figure.get_figheight(),
    )
    bar.outline.set_visible(False)


def _scale(values: Sequence[Array]) -> dict[str, Any]:
    """From the least to the largest value."""
    every = np.concatenate(values)
    every = every[np.isfinite(every)]
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    return {"vmin": low, "vmax": high if high > low else low + 1e-6, "cmap": SCALE}


def _rows(blocks: Sequence[Block], capacity: int) -> list[range]:
    """Which sites stand in each row: whole blocks, or, where one is longer than a row, so many sites."""
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


def _cut(blocks: Sequence[Block], start: int, stop: int) -> list[Block]:
    """The parts of the blocks between two sites."""
    return [
        Block(block.name, block.label, max(block.start, start), min(block.stop, stop))
        for block in blocks
        if block.start < stop and block.stop > start
    ]
