"""The figures of the leaky lab, drawn from sweeps: those of the paper, and some of our own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fathometer.errors import InputError
from fathometer.leaky import LeakyRun, LeakySweep
from fathometer.leaky.measures import CRITICAL
from fathometer.report.figures.style import (
    BLUE,
    DARK,
    GREY,
    NOTE_SIZE,
    Columns,
    column_figure,
    for_print,
    legend_above,
    note_below,
)
from fathometer.report.leaky_tables import (
    AFFINITY,
    CRIT,
    DECADES,
    DIMENSIONS,
    ENERGIES,
    LENGTHS,
    LINEAR,
    LOSSES,
    MOMENTA,
    RANKS,
    SERIES,
    Panel,
    Results,
    bottleneck_stretches,
    depth_table,
    path_table,
    usual_run,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

STEP = "#d5dade"  # positions of the layers

_MATH = {
    "−2H/L̃": r"$-2\mathcal{H}/\tilde{L}$",
    "stable −2H_γ/L̃": r"stable $-2\mathcal{H}_\gamma/\tilde{L}$",
    "stable rank of A_p": "stable rank of $A_p$",
    "stable rank of W_p": "stable rank of $W_p$",
    "affinity, share of A₋": "affinity, share of $A_-$",
    "‖A₋‖/‖A‖": r"$\|A_-\|/\|A\|$",
    "‖B_p‖": r"$\|B_p\|$",
    "‖B_p σ(A_p)ᵀ‖": r"$\|B_p\,\sigma(A_p)^{T}\|$",
    "Euclidean, per √N": r"path length, Euclidean, per $\sqrt{N}$",
    "in the K norm": "path length in the $K$ norm",
}
"""Labels of a page as formulas."""


@for_print
def plot_dimensions(sweep: LeakySweep, *, columns: Columns = 2) -> Figure:
    """Plot −2H/L̃, the stable −2H_γ/L̃, the lowest COI and the lowest stable rank against L̃ (Figure 1a).

    A point is a network: the median of its Hamiltonian over layers, or its lowest COI or stable rank over p;
    it is hollow where the weights are not at a critical point. Lines join the medians over seeds. Bars reach
    from the lowest to the highest Hamiltonian over layers and seeds. k* is dashed.
    """
    table = depth_table(sweep)
    series = {name: label for name, label in DIMENSIONS.series.items() if name != "rank"}
    figure = column_figure(columns, 2.8 if columns == 1 else 3.6)
    axes = figure.subplots()
    shift = 0.012 * float(np.ptp(table["effective_depth"]))
    handles = []
    for name, label in series.items():
        handles.append(_networks(axes, table, name, label))
        if name.startswith("hamiltonian"):
            _range(axes, table, name, shift if name == "hamiltonian" else -shift)
    ranks = {run.task.rank for run in sweep.runs}
    handles += mark_rank(axes, ranks.pop() if len(ranks) == 1 else None)
    bars = [f"{name}_{end}" for name in ("hamiltonian", "hamiltonian_stable") for end in ("min", "max")]
    dimension_axis(axes, table[[*series, *bars]].to_numpy(float))
    axes.set(ylabel=DIMENSIONS.y, xlabel=r"effective depth $\tilde{L}$")
    _depth_legend(figure, handles, table)
    return figure


@for_print
def plot_bounded(sweep: LeakySweep, *, columns: Columns = 2) -> Figure:
    """Plot path lengths, Euclidean over √N and in the K norm, ‖B‖ and ‖Bσᵀ‖ against L̃ (Figure 3).

    A point is a network; for the norms along p it is the median, and bars reach from the lowest to the
    highest over p and seeds. Lines join the medians over seeds.
    """
    table = depth_table(sweep)
    figure = column_figure(columns, 3.2 if columns == 1 else 4.0)
    grid = figure.subplots(2, 2, sharex=True)
    for axes, (name, label) in zip(grid.flat, {**LENGTHS.series, **MOMENTA.series}.items(), strict=True):
        title = _networks(axes, table, name, label).get_label()
        if name in MOMENTA.series:
            _range(axes, table, name, 0.0)
        axes.set_title(str(title).replace(", per", "\nper") if columns == 1 else str(title))
        axes.set_ylim(-0.05 * axes.get_ylim()[1], None)
    for axes in grid[1]:
        axes.set_xlabel(r"effective depth $\tilde{L}$")
    _depth_legend(figure, [], table)
    return figure


@for_print
def plot_spectra(results: Results, *, columns: Columns = 2) -> Figure:
    """Plot the singular values of A_p and of W_p along p (Figure 1b): the first k* in colour, others grey.

    W_l is at p_{l−1}, where its layer begins. Inside the bottleneck it has k* singular values near L̃, the
    dotted line.
    """
    run = usual_run(results)
    measures = run.measures
    figure = column_figure(columns, 4.2 if columns == 1 else 2.6)
    left, right = figure.subplots(*((2, 1) if columns == 1 else (1, 2)))
    _draw_spectra(left, measures.points["p"], measures.spectra, run, "singular values of $A_p$")
    draw_weight_spectra(right, run)
    name_spectra(figure, run)
    name_run(figure, run)
    return figure


@for_print
def plot_energies(results: Results, *, columns: Columns = 2) -> Figure:
    """Plot kinetic and potential energy, H and the stable H along p, in dimensions (Figure 1c).

    The parts are ‖∂A‖²/L̃² and ‖A‖² in (K + γI)⁻¹; their difference is the stable −2H_γ/L̃.
    """
    run = usual_run(results)
    if run.design.effective_depth <= 0:
        raise InputError("energies: expected L̃ > 0, got a plain ResNet (L̃ = 0), which has no Hamiltonian")
    figure = column_figure(columns, 2.6 if columns == 1 else 3.2)
    axes = figure.subplots()
    table = path_table(run)
    draw_panel(axes, table, ENERGIES)
    mark_rank(axes, run.task.rank)
    dimension_axis(axes, table[list(ENERGIES.series)].to_numpy(float))
    legend_above(figure, axes.get_lines())
    name_run(figure, run)
    return figure


@for_print
def plot_affinity(results: Results, *, columns: Columns = 2) -> Figure:
    """Plot the affinity score of σ along p, with ‖A₋‖/‖A‖, above the cost of identity: both papers in one.

    Inside the bottleneck, shaded, where the cost of identity is within half a dimension of its minimum, A is
    nearly non-negative (Proposition 5), so that ReLU acts as the identity, and its affinity score is near 1.
    """
    run = usual_run(results)
    table = path_table(run)
    if table["affinity"].isna().all():
        raise InputError("affinity: expected a score at some p, got none; measure with affinity=True")
    figure = column_figure(columns, 3.2 if columns == 1 else 3.6)
    top, bottom = figure.subplots(2, 1, sharex=True)
    draw_panel(top, table, AFFINITY, {"affinity": f"affinity score of {run.design.sigma}"})
    top.set(ylim=(-0.03, 1.04), xlabel="")
    draw_panel(bottom, table[["p", "cost_of_identity"]], RANKS)
    mark_rank(bottom, run.task.rank)
    cost = table["cost_of_identity"]
    bottom.set_ylabel("cost of identity\n(dimensions)")
    _log_axis(bottom, 0.7 * min(cost.min(), run.task.rank or cost.min()), 1.4 * cost.max())
    for axes in (top, bottom):
        for begin, end in bottleneck_stretches(table):
            axes.axvspan(begin, end, color=BLUE, alpha=0.1, linewidth=0, zorder=0)
    legend_above(figure, [*top.get_lines(), *bottom.get_lines()])
    name_run(figure, run)
    return figure


@for_print
def plot_ranks(results: Results, *, columns: Columns = 2) -> Figure:
    """Plot the dimensions along p: cost of identity, stable ranks of A_p and of W_p, and k*."""
    run = usual_run(results)
    figure = column_figure(columns, 2.5 if columns == 1 else 3.0)
    axes = figure.subplots()
    draw_panel(axes, path_table(run).dropna(axis="columns", how="all"), RANKS)
    mark_rank(axes, run.task.rank)
    shown = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.get_lines()])
    shown = shown[shown > 0]
    _log_axis(axes, 0.8 * float(shown.min()), 1.25 * float(shown.max()))
    legend_above(figure, axes.get_lines())
    name_run(figure, run)
    return figure


@for_print
def plot_training(results: Results, *, columns: Columns = 2) -> Figure:
    """Plot error, weight decay and `crit` over training: of one network, or of all in a sweep.

    Below the dashed line a network counts as critical.
    """
    runs = [results] if isinstance(results, LeakyRun) else list(results.runs)
    if all(len(run.history) == 0 for run in runs):
        raise InputError("training: expected a history of some epochs, got none")
    figure = column_figure(columns, 3.2 if columns == 1 else 3.4)
    top, bottom = figure.subplots(2, 1, sharex=True)
    faint = max(0.25, 1 / len(runs) ** 0.5)
    for run in runs:
        for axes, panel in ((top, LOSSES), (bottom, CRIT)):
            draw_panel(axes, run.history, panel, {"error": "error (MSE)", "crit": "crit"}, alpha=faint)
            axes.set_yscale("log")
    for line in top.get_lines()[1::2]:
        line.set_linestyle("--")  # weight decay
    bottom.axhline(CRITICAL, color=DARK, linestyle="--", linewidth=0.8)
    top.set_xlabel("")
    handles = [copy(line) for line in (*top.get_lines()[:2], bottom.get_lines()[0])]
    for handle in handles:
        handle.set_alpha(1)
    legend_above(figure, handles)
    if len(runs) == 1:
        name_run(figure, runs[0])
    else:
        note_below(figure, [f"{len(runs)} networks"])
    return figure


def draw_panel(
    axes: Axes, table: pd.DataFrame, panel: Panel, names: dict[str, str] | None = None, **settings: Any
) -> None:
    """Draw the columns of a panel that the table has, each in its colour; `names` are other labels."""
    for name, label in {**panel.series, **(names or {})}.items():
        if name in table and name in panel.series:
            _, colour, marker = SERIES[name]
            style = {"color": colour, "marker": marker, "label": _MATH.get(label, label)}
            known = table[[panel.x, name]].dropna()
            axes.plot(known[panel.x], known[name], **(style | settings))
    axes.set_ylabel(_MATH.get(panel.y, panel.y))
    axes.set_xlabel("$p$" if panel.x == "p" else str(panel.x))
    if panel.x == "p":
        axes.set_xlim(-0.02, 1.02)


def draw_weight_spectra(axes: Axes, run: LeakyRun) -> None:
    """Draw the spectra of W_p of a run, with L̃ as a dotted line."""
    measures, depth = run.measures, run.design.effective_depth
    if measures.weight_spectra is None:
        raise InputError("spectra: expected a path with weights, got one through representations alone")
    _draw_spectra(axes, measures.layers["p"], measures.weight_spectra, run, "singular values of $W_p$")
    if depth > 0:
        axes.axhline(depth, color=DARK, linestyle=":", linewidth=0.8)
        where: Any = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "xytext": (3, 0)}
        axes.annotate(r"$\tilde{L}$", (1, depth), va="center", fontsize=NOTE_SIZE, **where)


def name_spectra(figure: Figure, run: LeakyRun, *, steps: bool = False) -> None:
    """Add a legend for the lines of spectra, and for the steps."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=GREY, linewidth=0.7, label="others" if run.task.rank else "all")]
    if run.task.rank:
        label = f"first $k^* = {run.task.rank}$"
        handles.insert(0, Line2D([], [], color=BLUE, linewidth=1.2, marker="o", label=label))
    if steps:
        handles.append(Line2D([], [], color=STEP, linestyle="", marker="|", markersize=8, label=r"$p_\ell$"))
    legend_above(figure, handles)


def name_run(figure: Figure, run: LeakyRun) -> None:
    """Write under the figure which network it shows."""
    design, crit = run.design, run.measures.summary["crit"]
    parts = [
        rf"$\tilde{{L}}$ = {design.effective_depth:g}",
        f"$L$ = {design.layers}",
        f"{design.scheme} steps",
        f"seed {design.seed}",
        rf"$\gamma_0$ = {run.measures.gamma0:g}",
    ]
    note_below(figure, parts if math.isnan(crit) else [*parts, f"crit {crit:.2g}"])


def mark_rank(axes: Axes, rank: int | None) -> list[Line2D]:
    """Draw a dashed line at k*, where it is known."""
    if rank is None:
        return []
    return [axes.axhline(rank, color=DARK, linestyle="--", linewidth=0.8, label=f"$k^* = {rank}$", zorder=0)]


def dimension_axis(axes: Axes, values: Any) -> None:
    """Scale a vertical axis of dimensions: linear from −5 to 5, logarithmic beyond, if values go so far."""
    shown = np.ravel(values)
    shown = shown[np.isfinite(shown)]
    low, high = (float(shown.min()), float(shown.max())) if len(shown) else (0.0, 1.0)
    low, high = min(low, 0.0), max(high, 1.0)
    if max(-low, high) <= LINEAR:
        margin = 0.05 * (high - low)
        axes.set_ylim(low - margin, high + margin)
        return
    axes.set_yscale("symlog", linthresh=LINEAR, linscale=2.2)
    powers = [10.0**power for power in range(2, 9)]
    low = low - 0.5 if low >= -LINEAR else 1.3 * low
    high = high + 0.5 if high <= LINEAR else 1.3 * high
    _ticks(axes, [*(-power for power in powers), -10.0, -4.0, -2.0, *range(6), 10.0, *powers], low, high)


def _log_axis(axes: Axes, low: float, high: float) -> None:
    """Scale an axis logarithmically, with ticks 1, 10, … or 1, 2, 5, … as plain numbers."""
    axes.set_yscale("log")
    factors = (1, 2, 5) if high < 100 * low else (1,)
    _ticks(axes, [factor * 10.0**power for power in range(-6, 9) for factor in factors], low, high)


def _ticks(axes: Axes, ticks: Sequence[float], low: float, high: float) -> None:
    inside = [tick for tick in ticks if low <= tick <= high]
    axes.set_yticks(inside, [f"{tick:g}".replace("-", "−") for tick in inside])
    axes.set_yticks([], minor=True)
    axes.set_ylim(low, high)


def _draw_spectra(
    axes: Axes, p: pd.Series[float], spectra: np.ndarray[Any, Any], run: LeakyRun, label: str
) -> None:
    """Draw a line for each singular value, `[points, number]`, over four decades at most."""
    for number, values in reversed(list(enumerate(spectra.T))):
        style: Any = {"color": GREY, "linewidth": 0.4}
        if number < (run.task.rank or 0):
            style = {"color": BLUE, "linewidth": 1.2, "marker": "o"}
        axes.plot(p, values, label=f"$s_{{{number + 1}}}$", **style)
    top = float(spectra.max()) or 1.0
    axes.set_yscale("log")
    axes.set_ylim(max(top * 10.0**-DECADES, float(spectra.min()) / 2), top * 2)
    axes.set(ylabel=label, xlabel="$p$", xlim=(-0.02, 1.02))


def _networks(axes: Axes, table: pd.DataFrame, name: str, label: str) -> Line2D:
    """Draw a point for each network, hollow where it is not critical, and a line through the medians."""
    from matplotlib.lines import Line2D

    _, colour, marker = SERIES[name]
    label = _MATH.get(label, label)
    median = table.groupby("effective_depth")[name].median()
    axes.plot(median.index, median, color=colour, label=label)
    filled = np.where(table["crit"] <= CRITICAL, colour, "white").tolist()
    dots: Any = {"s": 12, "linewidths": 0.8, "zorder": 3, "marker": marker}
    axes.scatter(table["effective_depth"], table[name], edgecolors=colour, facecolors=filled, **dots)
    return Line2D([], [], color=colour, marker=marker, markersize=3.5, label=label)


def _range(axes: Axes, table: pd.DataFrame, name: str, shift: float) -> None:
    """Draw bars from the lowest to the highest over p and seeds, a little to the side."""
    groups = table.groupby("effective_depth")
    low, high = groups[f"{name}_min"].min(), groups[f"{name}_max"].max()
    axes.vlines(low.index + shift, low, high, color=SERIES[name][1], alpha=0.45, linewidth=2, zorder=1)


def _depth_legend(figure: Figure, handles: list[Line2D], table: pd.DataFrame) -> None:
    """Add a legend: the lines, and what bars and hollow points mean."""
    from matplotlib.lines import Line2D

    handles = [
        *handles,
        Line2D([], [], color=DARK, alpha=0.45, linewidth=2, label="range over $p$ and seeds"),
    ]
    if (table["crit"] > CRITICAL).any():
        ring: Any = {"marker": "o", "markerfacecolor": "white", "linestyle": ""}
        handles.append(Line2D([], [], color=DARK, label="hollow: not critical", **ring))
    legend_above(figure, handles)
