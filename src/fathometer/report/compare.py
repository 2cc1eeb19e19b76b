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
from fathometer.report.figures import BUOY, INK, PALETTE, SEA, new_figure

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW = 12  # so many distances can be read in the cells
_COLOURS = (
    *PALETTE,
    *(
        "#17becf",
        "#8c564b",
        "#e377c2",
        "#7f9a00",
        "#20303c",
        "#b8860b",
        "#0a3d91",
        "#ff7f50",
        "#5fd38d",
        "#a0006d",
    ),
)
"""Of families: 16 that can be told apart."""


def plot_dendrogram(
    clustering: Clustering,
    families: Mapping[str, str] | None = None,
    returns: Sequence[float] | None = None,
) -> Figure:
    """The tree, and beside it the distance matrix in the order of its leaves (Figures 5A, 5B, 14, 16, 17).

    Args:
        clustering: what `cluster` gives.
        families: network → family; names are coloured by it, and a legend says which colour is whose.
        returns: of each merge the share of draws in which it comes back (`Stability.merges`), if the batches
            were drawn anew; it stands at the merge, in percent.
    """
    matrix, names = clustering.ordered.to_numpy(), clustering.names
    count = len(names)
    size = max(2.8, min(16.0, 0.17 * count + 1.2))
    figure = new_figure(1.9 * size + 1.0, size)
    tree, square = figure.subplots(1, 2, width_ratios=(0.8, 1))
    _branches(tree, clustering, returns)
    tree.set_xlabel(f"{clustering.distances.metric} distance of {clustering.distances.gauge}", fontsize=8)
    tree.tick_params(labelsize=7)
    tree.set_yticks([])
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
    _colour(figure, square, names, families or {})
    correlation = "" if math.isnan(clustering.cophenetic) else f", cophenetic {clustering.cophenetic:.2f}"
    support = "" if returns is None else "; at the merges: % of draws in which they come back"
    figure.suptitle(f"{clustering.method} linkage{correlation}{support}", fontsize=9, color=INK)
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
        statistics: if given, modes are marked where there are two (`bimodal`), each with a tenth of the sites
            in the fit.
    """
    if not signatures:
        raise InputError("expected at least one signature to plot, got none")
    from matplotlib.ticker import MaxNLocator

    columns = min(6, len(signatures))
    rows = math.ceil(len(signatures) / columns)
    figure = new_figure(1.9 * columns, 1.35 * rows + 0.4)
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    every = np.concatenate(list(signatures.values()))
    low, high = float(every.min()), float(every.max())
    edges = np.linspace(low, high if high > low else low + 1, 21)
    mark: Artist | None = None
    for axes, (name, values) in zip(grid.flat, signatures.items(), strict=False):
        axes.hist(values, edges, color=SEA)
        axes.set_title(_plain(name), fontsize=7, color=INK)
        axes.tick_params(labelsize=6)
        axes.yaxis.set_major_locator(MaxNLocator(2, integer=True))
        axes.spines[["top", "right"]].set_visible(False)
        if statistics is not None and statistics["bimodal"].get(name) and _heaps(statistics["share"][name]):
            for mode in ("low", "high"):
                mark = axes.axvline(float(statistics[mode][name]), color=BUOY, linewidth=1)
    for axes in grid.flat[len(signatures) :]:
        axes.set_visible(False)
    figure.supxlabel(_of(gauge), fontsize=8)
    figure.supylabel("sites", fontsize=8)
    if mark is not None:
        words = ["two modes, where a network has them (dip, p < 0.05)"]
        figure.legend([mark], words, loc="outside upper center", fontsize=7, frameon=False)
    return figure


def plot_predictors(
    best: pd.DataFrame,
    statistics: pd.DataFrame,
    facts: pd.DataFrame,
    families: Mapping[str, str],
    target: str = "accuracy",
    gauge: str = "affinity",
) -> Figure:
    """A row for each family: accuracy against its best statistic and its best characteristic (Figure 4).

    Args:
        best: what `best_predictors` gives.
        statistics: network × statistic.
        facts: network × accuracy and characteristics.
        families: network → family.
        target: what was predicted.
        gauge: of which the statistics are.
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
        axes.set_xlabel(
            f"{row['predictor']} {_of(gauge)}" if row["kind"] == "signature" else row["predictor"], fontsize=8
        )
        axes.set_ylabel(f"{row['family']}\n{target}" if row["kind"] == "signature" else "", fontsize=8)
    return figure


def mean_and_std(table: pd.DataFrame, digits: int = 2) -> pd.DataFrame:
    """What `family_table` gives as the paper prints it: `0.53 ± 0.04`; one network has no ±."""

    def word(mean: float, std: float, count: int) -> str:
        if np.isnan(mean):
            return "–"
        return f"{mean:.{digits}f}" + (f" ± {std:.{digits}f}" if count > 1 else "")

    words = {
        quantity: list(map(word, *(table[quantity, part] for part in ("mean", "std", "count"))))
        for quantity in dict.fromkeys(table.columns.get_level_values(0))
    }
    return pd.DataFrame(words, index=table.index)


def _scatter(axes: Axes, x: pd.Series[float], y: pd.Series[float], row: Mapping[Any, Any]) -> None:
    known = np.isfinite(x.to_numpy(float)) & np.isfinite(y.to_numpy(float))
    x, y = x[known], y[known]
    axes.plot(x, y, "o", color=SEA, markersize=4)
    a, b = x.to_numpy(float), y.to_numpy(float)
    ends = np.array([a.min(), a.max()])
    axes.plot(ends, b.mean() + row["slope"] * (ends - a.mean()), color=BUOY, linewidth=1)
    rising = row["slope"] > 0
    for name, left, up in zip(x.index, x, y, strict=True):
        inward = left <= ends.mean()  # names stand towards the middle, where the line does not go
        above = inward != rising
        axes.annotate(
            _plain(str(name)),
            (left, up),
            xytext=(3 if inward else -3, 2 if above else -2),
            textcoords="offset points",
            ha="left" if inward else "right",
            va="bottom" if above else "top",
            fontsize=5,
            color=INK,
        )
    axes.margins(0.1, 0.15)
    axes.set_title(
        f"R² {row['r2']:.2f}, left out {row['r2_left_out']:.2f}, chance {row['chance']:.2f}",
        fontsize=7,
    )
    axes.tick_params(labelsize=6)
    axes.spines[["top", "right"]].set_visible(False)


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
                fontsize=6 if count <= 30 else 4,
                color=BUOY,
            )
    axes.add_collection(LineCollection(lines, colors=INK, linewidths=1))
    axes.set_xlim(1.05 * float(heights.max()) or 1.0, 0)
    axes.set_ylim(count - 0.5, -0.5)  # the first leaf on top, as the rows of the matrix


def _colour(figure: Figure, axes: Axes, names: tuple[str, ...], families: Mapping[str, str]) -> None:
    from matplotlib.lines import Line2D

    known = list(dict.fromkeys(families[name] for name in names if name in families))
    colour = {family: _COLOURS[place % len(_COLOURS)] for place, family in enumerate(known)}
    for tick, name in zip(axes.get_yticklabels(), names, strict=True):
        if name in families:
            tick.set_color(colour[families[name]])
    if len(known) > 1:
        marks = [Line2D([], [], marker="s", linestyle="", color=colour[family]) for family in known]
        figure.legend(
            marks,
            [_plain(family) for family in known],
            loc="outside lower center",
            ncols=min(7, len(known)),
            fontsize=7,
            frameon=False,
        )


def _heaps(share: float) -> bool:
    return 0.1 <= share <= 0.9


def _of(gauge: str) -> str:
    return "affinity score" if gauge == "affinity" else gauge.replace("_", " ")


def _plain(name: str) -> str:
    return name.replace("$", r"\$")
