"""A similarity map: every site of a network against every other, or against those of another network."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from fathometer.report.blocks import blocks_of, site_labels
from fathometer.report.figures.style import (
    DARK,
    LIGHT_GREY,
    MAX_HEIGHT,
    NOTE_SIZE,
    SMALL_SIZE,
    VERTICAL_NAME_WIDTH,
    WIDTHS,
    Columns,
    column_figure,
    for_print,
    plain_text,
    shortened,
)
from fathometer.report.tables import map_sites, map_table, missing_cells
from fathometer.results.similarity import SimilarityMap
from fathometer.results.sounding import Sounding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARGINS = 1.9, 1.3  # inches that names and the colour bar take beside and below the cells
_MAX_CELL = 0.5  # inches
_NUMBER = 0.24  # inches that a number takes
_LONGEST = 24  # letters of a name


@for_print
def plot_map(result: Sounding | SimilarityMap, *, columns: Columns = 2) -> Figure:
    """Plot CKA of every site with every other, depth from below and from the left; lines separate blocks.

    Names are those of all sites if they fit, otherwise those of blocks. A light grey cell has no value: its
    site does not vary, or saw other samples than most.
    """
    down, across = map_sites(result)
    values = map_table(result)["cka"].to_numpy().reshape(len(down), len(across))
    room = min((WIDTHS[columns] - _MARGINS[0]) / len(across), (MAX_HEIGHT - _MARGINS[1]) / len(down))
    if room < VERTICAL_NAME_WIDTH <= min(1.3 * room, (MAX_HEIGHT - _MARGINS[1]) / len(down)):
        room = VERTICAL_NAME_WIDTH  # cells a little higher than wide have room for names beside them
    height = min(room, _MAX_CELL) * len(down)
    figure = column_figure(columns, max(height, 0.8) + _MARGINS[1])
    axes = figure.subplots()
    low = min(0.0, float(np.nanmin(values, initial=0.0)))
    shown = axes.imshow(values, vmin=low, vmax=1, origin="lower", aspect="auto", interpolation="nearest")
    axes.set_facecolor(LIGHT_GREY)
    axes.spines[:].set_visible(False)
    thin: dict[str, Any] = {"color": "white", "linewidth": min(1.0, 10 * room)}
    for block in blocks_of(across)[1:]:
        axes.axvline(block.start - 0.5, **thin)
    for block in blocks_of(down)[1:]:
        axes.axhline(block.start - 0.5, **thin)
    wide = (WIDTHS[columns] - _MARGINS[0]) / len(across)
    for sites, size, ticks, turn in (
        (across, wide, axes.set_xticks, 90),
        (down, max(height, 0.8) / len(down), axes.set_yticks, 0),
    ):
        labels = site_labels(sites, VERTICAL_NAME_WIDTH / size)
        texts = [plain_text(label, _LONGEST) for label in labels.values()]
        ticks(list(labels), texts, rotation=turn, fontsize=SMALL_SIZE)
    axes.tick_params(length=0)
    if isinstance(result, SimilarityMap):
        axes.set_ylabel(shortened(result.names[0], max(height, 0.8)))
        axes.set_xlabel(shortened(result.names[1], wide * len(across)))
    if min(wide, height / len(down)) >= _NUMBER:
        centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL_SIZE}
        for (row, column), value in np.ndenumerate(values):
            colour = "white" if value < low + 0.5 * (1 - low) else DARK
            axes.text(column, row, "" if np.isnan(value) else f"{value:.2f}", color=colour, **centred)
    if note := missing_cells(result):
        figure.supxlabel(textwrap.fill(note, 60 * columns), fontsize=NOTE_SIZE, color=DARK)
    bar = figure.colorbar(shown, ax=axes, aspect=30, pad=0.01)
    bar.set_label("CKA, unbiased", fontsize=NOTE_SIZE)
    bar.outline.set_visible(False)
    return figure
