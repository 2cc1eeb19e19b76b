"""Networks side by side: a dendrogram with its matrix (Figure 5A, B), distributions (5C), predictors (4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fathometer.compare import Clustering
from fathometer.errors import InputError
from fathometer.report.figures.style import (
    BLUE,
    DARK,
    NOTE_SIZE,
    RED,
    SMALL_SIZE,
    WIDTHS,
    Columns,
    column_figure,
    for_print,
    legend_above,
    look,
    plain,
    words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_NUMBER = 0.24  # inches that a distance takes in its cell
_LONGEST = 22  # letters of a name beside the matrix


@for_print
def plot_dendrogram(
    clustering: Clustering,
    families: Mapping[str, str] | None = None,
    returns: Sequence[float] | None = None,
    *,
    columns: Columns = 2,
) -> Figure:
    """The tree, and beside it the distance matrix in the order of its leaves (Figures 5A, 5B, 14, 16, 17).

    Args:
        clustering: what `cluster` gives.
        families: network → family; names are coloured by it, and leaves marked.
        returns: of each merge the share of draws in which it comes back (`Stability.merges`), if the batches
            were drawn anew; it stands at the merge, in percent.
        columns: 1 or 2, the width in columns of a page.
    """
    matrix, names = clustering.ordered.to_numpy(), clustering.names
    count = len(names)
    figure = column_figure(columns, max(1.6, 0.17 * count + 0.3) + 0.6)
    tree, square = figure.subplots(1, 2, width_ratios=(0.7, 1))
    _branches(tree, clustering, returns)
    tree.set_yticks([])
    tree.spines["left"].set_visible(False)
    distances = clustering.distances
    correlation = "" if math.isnan(clustering.cophenetic) else f"\ncophenetic {clustering.cophenetic:.2f}"
    support = "" if returns is None else "\nat the merges: % of draws"
    tree.set_xlabel(f"{clustering.method} linkage{correlation}{support}", fontsize=NOTE_SIZE)
    shown = square.imshow(matrix, cmap="Blues_r", aspect="auto")
    square.spines[:].set_visible(False)
    labels = [plain(name, _LONGEST) for name in names]
    square.set_yticks(range(count), labels, fontsize=NOTE_SIZE if count <= 20 else SMALL_SIZE)
    square.tick_params("y", length=0)
    square.set_xticks([])  # the columns are in the order of the rows
    if (0.43 if columns == 1 else 0.48) * WIDTHS[columns] / count >= _NUMBER:
        _numbers(square, matrix)
    metric = distances.metric.upper() if distances.metric == "dtw" else distances.metric
    bar = figure.colorbar(shown, ax=square, location="bottom", aspect=30, pad=0.02)
    between = "\n" if columns == 1 else " "
    bar.set_label(f"{metric} distance{between}of the {words(distances.gauge)}", fontsize=NOTE_SIZE)
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
    """A panel for each network: a histogram of its scores (Figure 5C, D).

    Args:
        signatures: by name.
        gauge: what they hold.
        statistics: if given, modes are marked where there are two (`bimodal`), each with a tenth of the sites
            in the fit.
        columns: 1 or 2, the width in columns of a page.
    """
    if not signatures:
        raise InputError("expected at least one signature to plot, got none")
    from matplotlib.ticker import MaxNLocator

    mark: Line2D | None = None
    across = min(2 * columns + 1, len(signatures))
    rows = math.ceil(len(signatures) / across)
    figure = column_figure(columns, (0.85 if across > 1 else 1.6) * rows + 0.45)
    grid = figure.subplots(rows, across, sharex=True, squeeze=False)
    every = np.concatenate(list(signatures.values()))
    low, high = float(every.min()), float(every.max())
    edges = np.linspace(low, high if high > low else low + 1, 21)
    for axes, (name, values) in zip(grid.flat, signatures.items(), strict=False):
        axes.hist(values, edges, color=BLUE)
        axes.set_title(plain(name, 20), fontsize=NOTE_SIZE)
        axes.yaxis.set_major_locator(MaxNLocator(2, integer=True))
        if statistics is not None and statistics["bimodal"].get(name) and _heaps(statistics["share"][name]):
            for mode in ("low", "high"):
                mark = axes.axvline(float(statistics[mode][name]), color=RED, linewidth=1, linestyle="--")
    for place, axes in enumerate(grid.flat):
        axes.set_visible(place < len(signatures))
        axes.tick_params("x", labelbottom=place + across >= len(signatures))  # none below it
    figure.supxlabel(words(gauge), fontsize=8)
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
    """Of each family accuracy against its best statistic and its best characteristic (Figure 4).

    Args:
        best: what `best_predictors` gives.
        statistics: network × statistic.
        facts: network × accuracy and characteristics.
        families: network → family.
        target: what was predicted.
        gauge: of which the statistics are.
        columns: 1 or 2, the width in columns of a page, and families in a row.
    """
    shown = list(dict.fromkeys(best["family"]))
    across = min(columns, len(shown))
    rows = math.ceil(len(shown) / across)
    figure = column_figure(columns, 1.75 * rows + 0.1)
    grid = figure.subplots(rows, 2 * across, squeeze=False).ravel()
    for axes in grid:
        axes.set_visible(False)
    for row in best.to_dict("records"):
        place = 2 * shown.index(row["family"]) + (row["kind"] != "signature")
        axes = grid[place]
        axes.set_visible(True)
        source = statistics if row["kind"] == "signature" else facts
        members = [n for n in statistics.index if families.get(n) == row["family"] and n in facts.index]
        _scatter(axes, source.loc[members, row["predictor"]], facts.loc[members, target], row)
        predictor = words(str(row["predictor"]))
        axes.set_xlabel(f"{predictor} {words(gauge)}" if row["kind"] == "signature" else predictor)
        if row["kind"] == "signature":
            axes.set_ylabel(f"{plain(row['family'], 20)}\n{words(target)}")
    return figure


def _scatter(axes: Axes, x: pd.Series[float], y: pd.Series[float], row: Mapping[Any, Any]) -> None:
    known = np.isfinite(x.to_numpy(float)) & np.isfinite(y.to_numpy(float))
    x, y = x[known], y[known]
    axes.plot(x, y, "o", color=BLUE, markersize=3.5)
    a, b = x.to_numpy(float), y.to_numpy(float)
    ends = np.array([a.min(), a.max()])
    axes.plot(ends, b.mean() + row["slope"] * (ends - a.mean()), color=RED, linewidth=1)
    middle = (a.min() + a.max()) / 2
    for name, left, up in zip(x.index, x, y, strict=True):
        right = left > middle  # names stay inside
        axes.annotate(
            plain(str(name), 16),
            (left, up),
            xytext=(-2 if right else 2, 2),
            textcoords="offset points",
            ha="right" if right else "left",
            fontsize=SMALL_SIZE,
            color=DARK,
        )
    axes.set_title(
        f"R² {row['r2']:.2f}, left out {row['r2_left_out']:.2f}\nchance {row['chance']:.2f}",
        fontsize=NOTE_SIZE,
    )
    axes.margins(0.08, 0.15)
    axes.locator_params(nbins=4)


def _branches(axes: Axes, clustering: Clustering, returns: Sequence[float] | None) -> None:
    """The tree from leaves at the right, merge by merge: SciPy's own picture fails on long chains."""
    from matplotlib.collections import LineCollection

    count = len(clustering.order)
    where, heights = np.zeros(2 * count - 1), np.zeros(2 * count - 1)
    where[list(clustering.order)] = np.arange(count)
    lines = []
    for merge, (a, b, height, _) in enumerate(clustering.linkage):
        left, right = int(a), int(b)
        lines.append(
            [
                (heights[left], where[left]),
                (height, where[left]),
                (height, where[right]),
                (heights[right], where[right]),
            ]
        )
        where[count + merge], heights[count + merge] = (where[left] + where[right]) / 2, height
        if returns is not None:
            axes.annotate(
                f"{100 * returns[merge]:.0f}",
                (height, where[count + merge]),
                xytext=(2, 0),
                textcoords="offset points",
                va="center",
                fontsize=SMALL_SIZE,
                color=RED,
            )
    axes.add_collection(LineCollection(lines, colors=DARK, linewidths=0.8))
    axes.set_xlim(1.05 * float(heights.max()) or 1.0, 0)
    axes.set_ylim(count - 0.5, -0.5)  # the first leaf on top, as the rows of the matrix


def _numbers(square: Axes, matrix: NDArray[np.float64]) -> None:
    for (row, column), value in np.ndenumerate(matrix):
        dark = value < 0.5 * matrix.max()
        square.text(
            column,
            row,
            f"{value:.2f}",
            ha="center",
            va="center",
            fontsize=SMALL_SIZE,
            color="w" if dark else DARK,
        )


def _mark_families(
    figure: Figure, tree: Axes, square: Axes, names: tuple[str, ...], families: Mapping[str, str]
) -> None:
    """The same colour and mark for the members of a family."""
    from matplotlib.lines import Line2D

    known = list(dict.fromkeys(families[name] for name in names if name in families))
    for place, (tick, name) in enumerate(zip(square.get_yticklabels(), names, strict=True)):
        if name in families:
            looks = look(known.index(families[name]))
            tick.set_color(looks["color"])
            tree.plot(0, place, marker=looks["marker"], color=looks["color"], markersize=4, clip_on=False)
    if 1 < len(known) <= len(names) / 2:  # else the names say as much
        legend_above(
            figure,
            [
                Line2D([], [], label=plain(family, 24), **(look(number) | {"linestyle": ""}))
                for number, family in enumerate(known)
            ],
        )


def _heaps(share: float) -> bool:
    return 0.1 <= share <= 0.9
