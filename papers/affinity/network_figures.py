"""Figures of networks that only the reproduction needs: a matrix, raw signatures, tables of correlations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fathometer import Sounding
from fathometer.report import (
    DARK,
    GREY,
    NOTE_SIZE,
    SMALL_SIZE,
    column_figure,
    extend_to_one,
    for_print,
    legend_above,
    plain_text,
    point_size,
    series_style,
    signature_table,
)
from papers.roles import kinds_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NUMBER = 0.3  # inches that a number takes in its cell
_HEADS = {"cka": "CKA", "r2": "R²"}


@for_print
def plot_matrix(frame: pd.DataFrame, families: Mapping[str, str]) -> Figure:
    """Draw distances in the order of the rows, with families apart; numbers if they fit.

    `frame` is symmetric; neighbours of one family stand together.
    """
    names = [str(name) for name in frame.index]
    count = len(names)
    figure = column_figure(2 if count > 6 else 1, min(0.35 * count + 1.6, 7.2))
    axes = figure.subplots()
    shown = axes.imshow(frame.to_numpy(), cmap="Blues_r", aspect="auto")
    axes.spines[:].set_visible(False)
    labels = [plain_text(name, 24) for name in names]
    size = NOTE_SIZE if count <= 20 else SMALL_SIZE
    axes.set_xticks(range(count), labels, rotation=90, fontsize=size)
    axes.set_yticks(range(count), labels, fontsize=size)
    axes.tick_params(length=0)
    known = list(dict.fromkeys(families.values()))
    for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):
        for tick, name in zip(ticks, names, strict=True):
            tick.set_color(series_style(known.index(families[name]))["color"])
    place = 0
    for _, run in groupby(families[name] for name in names):
        place += len(list(run))
        if place < count:
            axes.axhline(place - 0.5, color="white", linewidth=0.8)
            axes.axvline(place - 0.5, color="white", linewidth=0.8)
    if (4.8 if count > 6 else 1.6) / count >= _NUMBER:
        largest = float(frame.to_numpy().max())
        for (row, column), value in np.ndenumerate(frame.to_numpy()):
            colour = "w" if value < 0.5 * largest else DARK
            axes.text(
                column, row, f"{value:.2f}", ha="center", va="center", fontsize=SMALL_SIZE, color=colour
            )
    bar = figure.colorbar(shown, ax=axes, shrink=0.6, pad=0.02)
    bar.set_label("DTW distance", fontsize=NOTE_SIZE)
    bar.outline.set_visible(False)
    return figure


@for_print
def plot_raw(soundings: Mapping[str, Sounding]) -> Figure:
    """Draw a panel for each network: its scores along depth, coloured by kind of site.

    The title has the mean standard deviation over batches (Figures 10 and 11).
    """
    across = min(3 if len(soundings) <= 9 else 4, len(soundings))
    rows = math.ceil(len(soundings) / across)
    figure = column_figure(2, 1.75 * rows + 0.2)
    grid = figure.subplots(rows, across, squeeze=False, sharey=True)
    for axes, (name, sounding) in zip(grid.flat, soundings.items(), strict=False):
        table = signature_table(sounding)
        mean, std = table["mean"].to_numpy(), table["std"].to_numpy()
        places, kinds = np.arange(len(mean)), np.array(kinds_of(sounding.sites))
        axes.plot(places, mean, color=GREY, linewidth=0.5, zorder=1)
        names = list(dict.fromkeys(kinds))
        for number, kind in enumerate(names):
            own = kinds == kind
            axes.errorbar(
                places[own],
                mean[own],
                yerr=std[own],
                linestyle="",
                marker=series_style(number)["marker"],
                color=series_style(number)["color"],
                markersize=0.75 * point_size(len(mean)),
                markeredgewidth=0,
                elinewidth=0.4,
            )
        lines = _legend_between(axes, names) if len(names) > 1 else 0
        title = f"{plain_text(name, 26)}\n± {np.nanmean(std):.4f} over batches"
        axes.set_title(title, fontsize=NOTE_SIZE, pad=4 + 6.5 * lines)
        axes.locator_params(axis="x", integer=True, nbins=5)
    extend_to_one(grid[0, 0], "affinity")  # which all share
    for axes in grid.flat[len(soundings) :]:
        axes.set_visible(False)
    figure.supxlabel("site")
    figure.supylabel("affinity score")
    return figure


@for_print
def plot_correlations(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw network × metric for each table, side by side, from −1 to 1 (Table 2)."""
    rows = max(len(table) for table in tables.values())
    figure = column_figure(2, min(0.16 * rows + 1.2, 8.5))
    grid = figure.subplots(1, len(tables), squeeze=False)[0]
    shown = None
    for axes, (title, table) in zip(grid, tables.items(), strict=True):
        values = table.to_numpy(float)
        shown = axes.imshow(values, cmap="PuOr", vmin=-1, vmax=1, aspect="auto")
        axes.set_title(plain_text(title, 40), fontsize=NOTE_SIZE)
        axes.set_yticks(
            range(len(table)), [plain_text(str(name), 22) for name in table.index], fontsize=SMALL_SIZE
        )
        heads = [_HEADS.get(str(name), plain_text(str(name), 12)) for name in table.columns]
        axes.set_xticks(range(len(heads)), heads, fontsize=SMALL_SIZE)
        axes.xaxis.tick_top()
        axes.set_ylim(rows - 0.5, -0.5)  # cells are as high in all tables
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        _write(axes, values)
    if shown is not None:
        bar = figure.colorbar(shown, ax=list(grid), location="bottom", shrink=0.4, aspect=40, pad=0.02)
        bar.set_label("Pearson correlation with the affinity score", fontsize=NOTE_SIZE)
        bar.outline.set_visible(False)
    return figure


@for_print
def plot_family_means(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw mean ± std by family, a panel for each metric, the tables side by side (Table 1).

    Tables are family × (metric, `mean` or `std`), by title.
    """
    first = next(iter(tables.values()))
    metrics = list(dict.fromkeys(first.columns.get_level_values(0)))
    families = list(dict.fromkeys(str(name) for table in tables.values() for name in table.index))
    families.sort(key=lambda name: name == "Average")  # last
    figure = column_figure(2, 0.2 * len(families) + 1.0)
    grid = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    for number, (title, table) in enumerate(tables.items()):
        shift = 0.5 * ((number + 0.5) / len(tables) - 0.5)
        for axes, metric in zip(grid, metrics, strict=True):
            looks = series_style(number) | {"linestyle": "", "markersize": 3.0}
            axes.errorbar(
                table[metric, "mean"],
                [families.index(str(name)) + shift for name in table.index],
                xerr=table[metric, "std"],
                elinewidth=0.8,
                label=plain_text(title, 40),
                **looks,
            )
    for axes, metric in zip(grid, metrics, strict=True):
        axes.axvline(0, color=GREY, linewidth=0.6, zorder=0)
        axes.set_xlim(-1.15, 1.15)
        axes.set_title(_HEADS.get(str(metric), plain_text(str(metric))), fontsize=NOTE_SIZE)
    grid[0].set_yticks(range(len(families)), [plain_text(name, 20) for name in families])
    grid[0].set_ylim(len(families) - 0.5, -0.5)
    figure.supxlabel("Pearson correlation with the affinity score, mean ± std over networks")
    legend_above(figure, grid[0].get_legend_handles_labels()[0])
    return figure


def _legend_between(axes: Axes, names: Sequence[str]) -> int:
    """Draw a small legend between axes and title, outside the layout; return its number of lines."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], **series_style(number) | {"linestyle": "", "label": plain_text(name, 13)})
        for number, name in enumerate(names)
    ]
    legend = axes.legend(
        handles=handles,
        fontsize=5,
        ncols=3,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        handlelength=1,
        handletextpad=0.1,
        columnspacing=0.6,
        labelspacing=0.1,
        borderpad=0,
        borderaxespad=0.1,
    )
    legend.set_in_layout(False)
    return math.ceil(len(names) / 3)


def _write(axes: Axes, values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = "w" if abs(value) > 0.6 else DARK
            axes.text(
                column, row, f"{value:.2f}", ha="center", va="center", fontsize=SMALL_SIZE, color=colour
            )
