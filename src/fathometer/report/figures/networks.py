"""Networks side by side: tree and distances (Figure 5A, B), distributions (5C), predictors (4), years (3)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fathometer.compare import Clustering
from fathometer.compare.soundings import Soundings
from fathometer.errors import InputError
from fathometer.report.figures.style import (
    BLUE,
    DARK,
    GREY,
    LIGHT_GREY,
    MARGIN,
    NOTE_SIZE,
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
    panel_figure,
    plain_text,
    series_style,
)
from fathometer.report.tables import branch_table, matrix_table, predictor_table, year_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_BESIDE: Any = {"textcoords": "offset points", "fontsize": SMALL_SIZE}


@for_print
def plot_dendrogram(
    clustering: Clustering,
    families: Mapping[str, str] | None = None,
    returns: Sequence[float] | None = None,
    *,
    columns: Columns = 2,
) -> Figure:
    """Plot the tree, and beside it the distance matrix in the order of its leaves (Figures 5A, 14, 16, 17).

    Names are coloured, and leaves marked, by `families` (network → family) of two networks or more.
    `returns`, for each merge the share of bootstrap draws in which it occurs (`Stability.merges`), is written
    at the merge, in percent.
    """
    names, distances, count = clustering.names, clustering.distances, len(clustering.names)
    figure = column_figure(columns, max(1.6, 0.17 * count + 0.3) + 0.6)
    tree, square = figure.subplots(1, 2, width_ratios=(0.7, 1))
    _branches(tree, clustering, returns)
    correlation = "" if math.isnan(clustering.cophenetic) else f"\ncophenetic {clustering.cophenetic:.2f}"
    support = "" if returns is None else "\nat the merges: % of draws"
    words = f"distance at merge\n{clustering.method} linkage{correlation}{support}"
    tree.set_xlabel(words, fontsize=NOTE_SIZE)
    cells = matrix_table(clustering)
    shown = square.imshow(cells["distance"].to_numpy().reshape(count, count), aspect="auto")
    square.spines[:].set_visible(False)
    size = NOTE_SIZE if count <= 20 else SMALL_SIZE
    square.set_yticks(range(count), [plain_text(name, 22) for name in names], fontsize=size)
    square.tick_params("y", length=0)
    square.set_xticks([])  # the columns are in the order of the rows
    if (0.43 if columns == 1 else 0.48) * WIDTHS[columns] / count >= 0.24:  # inches that a number takes
        centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL_SIZE}
        for cell in cells.itertuples():
            colour = "white" if cell.distance < 0.5 * cells["distance"].max() else DARK
            square.text(cell.column, cell.row, f"{cell.distance:.2f}", color=colour, **centred)
    bar = figure.colorbar(shown, ax=square, location="bottom", aspect=30, pad=0.02)
    between = "\n" if columns == 1 else " "
    bar.set_label(
        f"{distances.label} distance{between}of the {axis_label(distances.gauge)}", fontsize=NOTE_SIZE
    )
    bar.outline.set_visible(False)
    _mark_families(figure, tree, square, names, families or {})
    return figure


@for_print
def plot_distributions(
    signatures: Mapping[str, NDArray[np.float64]],
    gauge: str = "affinity",
    statistics: pd.DataFrame | None = None,
    *,
    columns: Columns = 2,
) -> Figure:
    """Plot a histogram of the scores of each network (Figure 5C, D).

    With `statistics`, modes are marked where there are two (`bimodal`), each with at least a tenth of the
    sites.
    """
    if not signatures:
        raise InputError("expected at least one signature to plot, got none")
    from matplotlib.ticker import MaxNLocator

    mark: Line2D | None = None
    across = min(2 * columns + 1, len(signatures))
    figure, panels = panel_figure(columns, len(signatures), across, 0.85 if across > 1 else 1.6, 0.45)
    every = np.concatenate(list(signatures.values()))
    low, high = float(every.min()), float(every.max())
    edges = np.linspace(low, high if high > low else low + 1, 21).tolist()
    for axes, (name, values) in zip(panels, signatures.items(), strict=True):
        axes.hist(values, edges, color=BLUE)
        axes.set_title(plain_text(name, 20), fontsize=NOTE_SIZE)
        axes.yaxis.set_major_locator(MaxNLocator(2, integer=True))
        if statistics is None or not statistics["bimodal"].get(name):
            continue
        for mode in ("low", "high") if 0.1 <= statistics["share"][name] <= 0.9 else ():
            mark = axes.axvline(float(statistics[mode][name]), color=RED, linewidth=1, linestyle="--")
    figure.supxlabel(axis_label(gauge), fontsize=8)
    figure.supylabel("sites", fontsize=8)
    if mark is not None:
        mark.set_label("two modes, where a network has them (dip, p < 0.05)")
        legend_above(figure, [mark])
    return figure


@for_print
def plot_predictors(
    best: pd.DataFrame,
    statistics: pd.DataFrame,
    facts: pd.DataFrame,
    families: Mapping[str, str],
    target: str = "accuracy",
    gauge: str = "affinity",
    *,
    columns: Columns = 2,
) -> Figure:
    """Plot the accuracy of each family against its best statistic and its best characteristic (Figure 4).

    `best` is what `best_predictors` returns for the same statistics, facts, families and target.
    """
    shown = list(dict.fromkeys(best["family"]))
    across = min(columns, len(shown))
    rows = math.ceil(len(shown) / across)
    figure = column_figure(columns, 1.75 * rows + 0.1)
    grid = figure.subplots(rows, 2 * across, squeeze=False).ravel()
    for axes in grid:
        axes.set_visible(False)
    for row, table in predictor_table(best, statistics, facts, families, target):
        axes = grid[2 * shown.index(row["family"]) + (row["kind"] != "signature")]
        axes.set_visible(True)
        _fit(axes, table, row)
        predictor = axis_label(str(row["predictor"]))
        axes.set_xlabel(f"{predictor} {axis_label(gauge)}" if row["kind"] == "signature" else predictor)
        if row["kind"] == "signature":
            axes.set_ylabel(f"{plain_text(row['family'], 20)}\n{axis_label(target)}")
    return figure


@for_print
def plot_years(
    soundings: Soundings, facts: pd.DataFrame, gauge: str = "affinity", *, columns: Columns = 2
) -> Figure:
    """Plot min, median and max of the scores of each network, in order of year (Figure 3).

    A grey step is the median over the networks of a year of their medians. `facts` are network × `year`, and
    `family` if known; families of two networks or more have a colour.
    """
    table = year_table(soundings, facts, gauge)
    count, room = len(table), (WIDTHS[columns] - MARGIN) / len(table)
    figure = column_figure(columns, 2.8 if columns == 1 else 3.0)
    axes = figure.subplots()
    members = table["family"].value_counts(sort=False)
    families = [family for family in members.index if members[family] > 1]
    places = np.arange(count)
    for family in members.index:
        is_alone = family not in families
        look = {"color": DARK, "marker": "o"} if is_alone else series_style(families.index(family))
        own = (table["family"] == family).to_numpy()
        axes.vlines(
            places[own], table["min"][own], table["max"][own], look["color"], linewidth=2.2, alpha=0.55
        )
        axes.plot(places[own], table["median"][own], **look | {"linestyle": "", "markersize": 4.5})
    _mark_years(axes, [int(year) for year in table["year"]], room)
    axes.stairs(
        table["year_median"], np.arange(count + 1) - 0.5, baseline=None, color=GREY, linewidth=1.2, zorder=1
    )
    axes.set_xlim(-0.5, count - 0.5)
    axes.set_ylabel(axis_label(gauge))
    axes.tick_params("x", length=0)
    if room >= VERTICAL_NAME_WIDTH:
        axes.set_xticks(
            places, [plain_text(name, 26) for name in table.index], rotation=90, fontsize=SMALL_SIZE
        )
    else:
        axes.set_xticks([])
        axes.set_xlabel(f"{count} networks, in order of year")
    if len(members) > 1:
        name_series(figure, families, 24, markersize=4.5, linewidth=2.2, linestyle="-")
    return figure


def _branches(axes: Axes, clustering: Clustering, returns: Sequence[float] | None) -> None:
    """Draw the tree from its leaves at the right, merge by merge."""
    from matplotlib.collections import LineCollection

    table = branch_table(clustering)
    lines = table[["height", "row"]].to_numpy().reshape(-1, 4, 2)
    axes.add_collection(LineCollection(list(lines), colors=DARK, linewidths=0.8))
    for merge, corners in enumerate(lines if returns is not None else ()):
        assert returns is not None
        place = corners[1:3].mean(axis=0)
        text = f"{100 * returns[merge]:.0f}"
        axes.annotate(text, tuple(place), xytext=(2, 0), va="center", color=RED, **_BESIDE)
    axes.set_xlim(1.05 * float(table["height"].max()) or 1.0, 0)
    axes.set_ylim(len(clustering.names) - 0.5, -0.5)  # the first leaf on top, as the rows of the matrix
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def _mark_families(
    figure: Figure, tree: Axes, square: Axes, names: Sequence[str], families: Mapping[str, str]
) -> None:
    """Give the members of a family the same colour and mark; a network without relatives has neither."""
    members = Counter(families[name] for name in names if name in families)
    known = [family for family, count in members.items() if count > 1]
    for place, (tick, name) in enumerate(zip(square.get_yticklabels(), names, strict=True)):
        if families.get(name) in known:
            style = series_style(known.index(families[name]))
            tick.set_color(style["color"])
            tree.plot(0, place, marker=style["marker"], color=style["color"], markersize=4, clip_on=False)
    name_series(figure, known, 24, linestyle="")


def _fit(axes: Axes, table: pd.DataFrame, row: Mapping[str, Any]) -> None:
    """Draw networks as points with their names, and the line through them."""
    axes.plot(table["value"], table["target"], "o", color=BLUE, markersize=3.5)
    line = table.sort_values("value").iloc[[0, -1]]
    axes.plot(line["value"], line["fit"], color=RED, linewidth=1)
    middle = line["value"].mean()
    for name, x, y in zip(table.index, table["value"], table["target"], strict=True):
        side, shift = ("right", -2) if x > middle else ("left", 2)  # names stay inside
        axes.annotate(plain_text(str(name), 16), (x, y), xytext=(shift, 2), ha=side, **_BESIDE)
    axes.set_title(
        f"R² {row['r2']:.2f}, left out {row['r2_left_out']:.2f}\np {row['p']:.2f}",
        fontsize=NOTE_SIZE,
    )
    axes.margins(0.08, 0.15)
    axes.locator_params(nbins=4)


def _mark_years(axes: Axes, years: Sequence[int], room: float) -> None:
    """Shade every other year, with its number on top."""
    place = 0
    for number, (year, run) in enumerate(groupby(years)):
        count = len(list(run))
        if number % 2:
            axes.axvspan(place - 0.5, place + count - 0.5, color=LIGHT_GREY, linewidth=0, zorder=-10)
        style: Any = (
            {"rotation": 90, "fontsize": SMALL_SIZE} if room * count < 0.3 else {"fontsize": NOTE_SIZE}
        )
        where = (place + (count - 1) / 2, 1.01)
        axes.annotate(str(year), where, xycoords=("data", "axes fraction"), ha="center", va="bottom", **style)
        place += count
