"""Many networks against their effective depth: dimensions (Figure 1a), and what stays bounded (Figure 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from fathometer.leaky import LeakySweep
from fathometer.leaky.measures import CRITICAL
from fathometer.report.figures.leaky.paths import dimension_axis, mark_rank
from fathometer.report.figures.style import (
    BLUE,
    DARK,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    Columns,
    column_figure,
    for_print,
    legend_above,
)
from fathometer.report.leaky_tables import depth_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Looks: TypeAlias = dict[str, tuple[str, str, str]]

_DIMENSIONS: Looks = {
    "cost_of_identity": ("least COI", ORANGE, "s"),
    "stable_rank": ("least stable rank", GREEN, "^"),
    "hamiltonian_stable": (r"stable $-2\mathcal{H}_\gamma/\tilde{L}$", RED, "D"),
    "hamiltonian": (r"$-2\mathcal{H}/\tilde{L}$", BLUE, "o"),
}

_BOUNDED: Looks = {
    "length_per_root_n": (r"path length, Euclidean, per $\sqrt{N}$", BLUE, "o"),
    "length_kernel": ("path length in the $K$ norm", ORANGE, "s"),
    "momentum": (r"$\|B_p\|$", RED, "D"),
    "momentum_sigma": (r"$\|B_p\,\sigma(A_p)^{T}\|$", PURPLE, "^"),
}


@for_print
def plot_dimensions(sweep: LeakySweep, *, columns: Columns = 2) -> Figure:
    """−2H/L̃, the stable −2H_γ/L̃, the least COI and the least stable rank against L̃ (Figure 1a).

    A point is a network: the median of its Hamiltonian over layers, or its least COI or stable rank over p;
    it is hollow where the weights are not at a critical point. Lines join the medians over seeds. Bars reach
    from the least to the largest Hamiltonian over layers and seeds. k* is dashed.
    """
    table = depth_table(sweep)
    figure = column_figure(columns, 2.8 if columns == 1 else 3.6)
    axes = figure.subplots()
    shift = 0.012 * (table["effective_depth"].max() - table["effective_depth"].min())
    for name, (label, colour, marker) in _DIMENSIONS.items():
        _seeds(axes, table, name, label, colour, marker)
        if name.startswith("hamiltonian"):
            _bars(axes, table, name, colour, shift if name == "hamiltonian" else -shift)
    ranks = {run.task.rank for run in sweep.runs}
    rank = ranks.pop() if len(ranks) == 1 else None
    mark_rank(axes, rank)
    shown = [
        *_DIMENSIONS,
        "hamiltonian_min",
        "hamiltonian_max",
        "hamiltonian_stable_min",
        "hamiltonian_stable_max",
    ]
    dimension_axis(axes, [float(value) for name in shown for value in table[name]])
    axes.set_ylabel("dimensions")
    _against_depth(axes)
    _legend(figure, _DIMENSIONS, rank, table)
    return figure


@for_print
def plot_bounded(sweep: LeakySweep, *, columns: Columns = 2) -> Figure:
    """Path lengths, Euclidean over √N and in the K norm, ‖B‖ and ‖Bσᵀ‖ against L̃ (Figure 3).

    A point is a network; of the norms along p it is the median, and bars reach from the least to the largest
    over p and seeds. Lines join the medians over seeds.
    """
    table = depth_table(sweep)
    figure = column_figure(columns, 3.2 if columns == 1 else 4.0)
    grid = figure.subplots(2, 2, sharex=True)
    for axes, (name, (label, colour, marker)) in zip(grid.flat, _BOUNDED.items(), strict=True):
        _seeds(axes, table, name, label, colour, marker)
        if name.startswith("momentum"):
            _bars(axes, table, name, colour, 0.0)
        axes.set_title(label.replace(", per", "\nper") if columns == 1 else label)
        axes.set_ylim(-0.05 * axes.get_ylim()[1], None)
        _against_depth(axes)
    for axes in grid[0]:
        axes.set_xlabel("")
    _legend(figure, {}, None, table)
    return figure


def _seeds(axes: Axes, table: pd.DataFrame, name: str, label: str, colour: str, marker: str) -> None:
    """A point for each network, hollow where it is not critical, and a line through the medians."""
    median = table.groupby("effective_depth")[name].median()
    axes.plot(median.index, median, color=colour, label=label)
    critical = table["crit"] <= CRITICAL
    axes.scatter(
        table["effective_depth"],
        table[name],
        s=12,
        marker=marker,
        linewidths=0.8,
        edgecolors=colour,
        facecolors=np.where(critical, colour, "white").tolist(),
        zorder=3,
    )


def _bars(axes: Axes, table: pd.DataFrame, name: str, colour: str, shift: float) -> None:
    """From the least to the largest over p and seeds, a little to the side."""
    groups = table.groupby("effective_depth")
    low, high = groups[f"{name}_min"].min(), groups[f"{name}_max"].max()
    axes.vlines(low.index + shift, low, high, color=colour, alpha=0.45, linewidth=2, zorder=1)


def _against_depth(axes: Axes) -> None:
    axes.set_xlabel(r"effective depth $\tilde{L}$")


def _legend(figure: Figure, looks: Looks, rank: int | None, table: pd.DataFrame) -> None:
    """Names of the lines, and what bars and hollow points mean."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker=marker, markersize=3.5, label=label)
        for label, colour, marker in looks.values()
    ]
    if rank is not None:
        handles.append(Line2D([], [], color=DARK, linestyle="--", linewidth=0.8, label=f"$k^* = {rank}$"))
    reach = "range over $p$ and seeds"
    handles.append(Line2D([], [], color=DARK, alpha=0.45, linewidth=2, label=reach))
    if (table["crit"] > CRITICAL).any():
        label = "hollow: not critical"
        ring = Line2D([], [], color=DARK, marker="o", markerfacecolor="white", linestyle="", label=label)
        handles.append(ring)
    legend_above(figure, handles)
