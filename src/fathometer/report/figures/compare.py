"""Networks side by side: a dendrogram with its matrix (Figure 5A, B), distributions (5C), predictors (4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fathometer.compare import Clustering
from fathometer.errors import InputError
from fathometer.report.figures.style import BUOY, INK, PALETTE, SEA, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW = 12  # so many distances can be read in the cells


def plot_dendrogram(clustering: Clustering, families: Mapping[str, str] | None = None) -> Figure:
    """The tree, and beside it the distance matrix in the order of its leaves (Figures 5A, 5B, 14, 16, 17).

    Args:
        clustering: what `cluster` gives.
        families: network → family; names are coloured by it.
    """
    from scipy.cluster.hierarchy import dendrogram

    matrix, names = clustering.ordered.to_numpy(), clustering.names
    count = len(names)
    size = max(2.8, min(16.0, 0.17 * count + 1.2))
    figure = new_figure(1.9 * size + 1.0, size)
    tree, square = figure.subplots(1, 2, width_ratios=(0.8, 1))
    dendrogram(
        clustering.linkage,
        orientation="left",
        ax=tree,
        no_labels=True,
        color_threshold=0,
        above_threshold_color=INK,
    )
    tree.invert_yaxis()  # leaves from the top, as the rows of the matrix
    tree.set_xlabel(f"{clustering.distances.metric} distance of {clustering.distances.gauge}", fontsize=8)
    tree.tick_params(labelsize=7)
    tree.spines[["top", "right", "left"]].set_visible(False)
    shown = square.imshow(matrix, cmap="Blues_r", aspect="auto")
    labels = [_plain(name) for name in names]
    font = 8 if count <= 30 else 6
    square.set_yticks(range(count), labels, fontsize=font)
    square.set_xticks([])  # the columns are in the order of the rows
    if count <= _FEW:
        for (row, column), value in np.ndenumerate(matrix):
            dark = value < 0.5 * matrix.max()
            square.text(
                column, row, f"{value:.2f}", ha="center", va="center", fontsize=6, color="w" if dark else INK
            )
    figure.colorbar(shown, ax=square, shrink=0.7)
    _colour(square, names, families or {})
    correlation = "" if math.isnan(clustering.cophenetic) else f", cophenetic {clustering.cophenetic:.2f}"
    figure.suptitle(f"{clustering.method} linkage{correlation}", fontsize=9, color=INK)
    return figure


def plot_distributions(
    signatures: Mapping[str, NDArray[np.float64]],
    gauge: str = "affinity",
    statistics: pd.DataFrame | None = None,
) -> Figure:
    """A panel for each network: a histogram of its scores (Figure 5C, D).

    Args:
        signatures: by name.
        gauge: what they hold.
        statistics: if given, two modes are marked where there are two (`bimodal`).
    """
    if not signatures:
        raise InputError("expected at least one signature to plot, got none")
    columns = min(6, len(signatures))
    rows = math.ceil(len(signatures) / columns)
    figure = new_figure(1.9 * columns, 1.35 * rows + 0.4)
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    every = np.concatenate(list(signatures.values()))
    low, high = float(every.min()), float(every.max())
    edges = np.linspace(low, high if high > low else low + 1, 21)
    for axes, (name, values) in zip(grid.flat, signatures.items(), strict=False):
        axes.hist(values, edges, color=SEA)
        axes.set_title(_plain(name), fontsize=7, color=INK)
        axes.tick_params(labelsize=6)
        axes.set_yticks([])
        axes.spines[["top", "right", "left"]].set_visible(False)
        if statistics is not None and statistics["bimodal"].get(name):
            for mode in ("low", "high"):
                axes.axvline(float(statistics[mode][name]), color=BUOY, linewidth=1)
    for axes in grid.flat[len(signatures) :]:
        axes.set_visible(False)
    figure.supxlabel(gauge.replace("_", " "), fontsize=8)
    return figure


def plot_predictors(
    best: pd.DataFrame,
    statistics: pd.DataFrame,
    facts: pd.DataFrame,
    families: Mapping[str, str],
    target: str = "accuracy",
) -> Figure:
    """A row for each family: accuracy against its best statistic and its best characteristic (Figure 4).

    Args:
        best: what `best_predictors` gives.
        statistics: network × statistic.
        facts: network × accuracy and characteristics.
        families: network → family.
        target: what was predicted.
    """
    shown = list(dict.fromkeys(best["family"]))
    figure = new_figure(6.4, 2.3 * len(shown) + 0.3)
    grid = figure.subplots(len(shown), 2, squeeze=False)
    for axes in grid.flat:
        axes.set_visible(False)
    for row in best.to_dict("records"):
        place = shown.index(row["family"])
        axes = grid[place, 0 if row["kind"] == "signature" else 1]
        axes.set_visible(True)
        source = statistics if row["kind"] == "signature" else facts
        members = [n for n in statistics.index if families.get(n) == row["family"] and n in facts.index]
        _scatter(axes, source.loc[members, row["predictor"]], facts.loc[members, target], row)
        axes.set_ylabel(f"{row['family']}\n{target}" if row["kind"] == "signature" else "", fontsize=8)
    return figure


def _scatter(axes: Axes, x: pd.Series[float], y: pd.Series[float], row: Mapping[object, object]) -> None:
    axes.plot(x, y, "o", color=SEA, markersize=4)
    known = np.isfinite(x.to_numpy(float)) & np.isfinite(y.to_numpy(float))
    a, b = x.to_numpy(float)[known], y.to_numpy(float)[known]
    ends = np.array([a.min(), a.max()])
    axes.plot(ends, b.mean() + float(str(row["slope"])) * (ends - a.mean()), color=BUOY, linewidth=1)
    for name, left, up in zip(x.index, x, y, strict=True):
        axes.annotate(_plain(str(name)), (left, up), fontsize=5, color=INK)
    axes.set_xlabel(str(row["predictor"]), fontsize=8)
    axes.set_title(
        f"R² {float(str(row['r2'])):.2f}, left out {float(str(row['r2_left_out'])):.2f}, "
        f"chance {float(str(row['chance'])):.2f}",
        fontsize=7,
    )
    axes.tick_params(labelsize=6)
    axes.spines[["top", "right"]].set_visible(False)


def _colour(axes: Axes, names: tuple[str, ...], families: Mapping[str, str]) -> None:
    known = list(dict.fromkeys(families[name] for name in names if name in families))
    for tick, name in zip(axes.get_yticklabels(), names, strict=True):
        if name in families:
            tick.set_color(PALETTE[known.index(families[name]) % len(PALETTE)])


def _plain(name: str) -> str:
    return name.replace("$", r"\$")
