"""The figures of the leaky lab, drawn from sweeps: those of the paper, and some of our own."""

from __future__ import annotations

import math
import re
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
    RunOrSweep,
    bottleneck_intervals,
    default_run,
    depth_table,
    leaky_path_table,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

STEP = "#d5dade"  # positions of the layers
POSITION = "position p, from 0 (input) to 1 (output)"
_TICKS = (-1000, -100, -10, -4, -2, 0, 1, 2, 3, 4, 5, 10, 100, 1000, 10_000)  # of an axis of dimensions


@for_print
def plot_dimensions(sweep: LeakySweep | pd.DataFrame, *, columns: Columns = 2) -> Figure:
    """Plot −2H/L̃, the stable −2H_γ/L̃, the lowest COI and the lowest stable rank against L̃ (Figure 1a).

    A point is a network: the median of its Hamiltonian over layers, or its lowest COI or stable rank over p;
    it is hollow where the weights are not at a critical point. Lines join the medians over seeds. Bars reach
    from the lowest to the highest Hamiltonian over layers and seeds. k* is dashed.

    Args:
        sweep: networks that differ only in L̃ and seed, or their `depth_table`.
        columns: 1 or 2, the width in columns of a page.
    """
    table = depth_table(sweep) if isinstance(sweep, LeakySweep) else sweep
    figure = column_figure(columns, 2.8 if columns == 1 else 3.6)
    axes = figure.subplots()
    shift = 0.012 * float(np.ptp(table["effective_depth"]))
    handles = []
    for name, label in DIMENSIONS.series.items():
        if name == "rank":
            continue
        handles.append(_networks(axes, table, name, label))
        if name.startswith("hamiltonian"):
            _range(axes, table, name, shift if name == "hamiltonian" else -shift)
    ranks = set(table["rank_of_task"].dropna())
    handles += mark_rank(axes, int(ranks.pop()) if len(ranks) == 1 else None)
    axes.set(ylabel=DIMENSIONS.y, xlabel="effective depth L̃")
    scale_axis(axes, DIMENSIONS.axis)
    _depth_legend(figure, handles, table)
    return figure


@for_print
def plot_bounded(sweep: LeakySweep | pd.DataFrame, *, columns: Columns = 2) -> Figure:
    """Plot path lengths, Euclidean over √N and in the K norm, ‖B‖ and ‖Bσᵀ‖ against L̃ (Figure 3).

    A point is a network; for the norms along p it is the median, and bars reach from the lowest to the
    highest over p and seeds. Lines join the medians over seeds.

    Args:
        sweep: networks that differ only in L̃ and seed, or their `depth_table`.
        columns: 1 or 2, the width in columns of a page.
    """
    table = depth_table(sweep) if isinstance(sweep, LeakySweep) else sweep
    figure = column_figure(columns, 3.2 if columns == 1 else 4.0)
    grid = figure.subplots(2, 2, sharex=True)
    for panel, row in zip((LENGTHS, MOMENTA), grid, strict=True):
        for axes, (name, label) in zip(row, panel.series.items(), strict=True):
            _networks(axes, table, name, label)
            if panel is MOMENTA:
                _range(axes, table, name, 0.0)
            axes.set_title(as_formula(label) if panel is MOMENTA else f"path length, {label}")
            axes.set_ylim(-0.05 * axes.get_ylim()[1], None)
    for axes in grid[1]:
        axes.set_xlabel("effective depth L̃")
    _depth_legend(figure, [], table)
    return figure


@for_print
def plot_spectra(results: RunOrSweep, *, columns: Columns = 2) -> Figure:
    """Plot the singular values of A_p and of W_p along p (Figure 1b): the first k* in colour, others grey.

    W_l is at p_{l−1}, where its layer begins. Inside the bottleneck it has k* singular values near L̃, the
    dotted line.
    """
    run = default_run(results)
    measures = run.measures
    figure = column_figure(columns, 4.2 if columns == 1 else 2.6)
    left, right = figure.subplots(*((2, 1) if columns == 1 else (1, 2)))
    _draw_spectra(left, measures.points["p"], measures.spectra, run, "singular values of $A_p$")
    draw_weight_spectra(right, run)
    name_spectra(figure, run)
    name_run(figure, run)
    return figure


@for_print
def plot_energies(results: RunOrSweep, *, columns: Columns = 2) -> Figure:
    """Plot kinetic and potential energy, H and the stable H along p, in dimensions (Figure 1c).

    The parts are ‖∂A‖²/L̃² and ‖A‖² in (K + γI)⁻¹; their difference is the stable −2H_γ/L̃.
    """
    run = default_run(results)
    if run.design.effective_depth <= 0:
        raise InputError("energies: expected L̃ > 0, got a plain ResNet (L̃ = 0), which has no Hamiltonian")
    return _one_panel(run, ENERGIES, columns)


@for_print
def plot_ranks(results: RunOrSweep, *, columns: Columns = 2) -> Figure:
    """Plot the dimensions along p: cost of identity, stable ranks of A_p and of W_p, and k*."""
    return _one_panel(default_run(results), RANKS, columns)


@for_print
def plot_affinity(results: RunOrSweep, *, columns: Columns = 2) -> Figure:
    """Plot the affinity score of σ along p, with ‖A₋‖/‖A‖, above the cost of identity: both papers in one.

    Inside the bottleneck, shaded, where the cost of identity is within half a dimension of its minimum, A is
    nearly non-negative (Proposition 5), so that ReLU acts as the identity, and its affinity score is near 1.
    """
    run = default_run(results)
    table = leaky_path_table(run)
    if table["affinity"].isna().all():
        raise InputError("affinity: expected a score at some p, got none; measure with affinity=True")
    figure = column_figure(columns, 3.2 if columns == 1 else 3.6)
    top, bottom = figure.subplots(2, 1, sharex=True)
    draw_panel(top, table, AFFINITY)
    draw_panel(bottom, table[["p", "cost_of_identity"]], RANKS)
    mark_rank(bottom, run.task.rank)
    top.set_xlabel("")
    bottom.set_ylabel("cost of identity\n(dimensions)")
    for axes in (top, bottom):
        for begin, end in bottleneck_intervals(table):
            axes.axvspan(begin, end, color=BLUE, alpha=0.1, linewidth=0, zorder=0)
    legend_above(figure, [*top.get_lines(), *bottom.get_lines()])
    name_run(figure, run)
    return figure


@for_print
def plot_training(results: RunOrSweep, *, columns: Columns = 2) -> Figure:
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
            draw_panel(axes, run.history, panel, alpha=faint)
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


def _one_panel(run: LeakyRun, panel: Panel, columns: Columns) -> Figure:
    figure = column_figure(columns, 2.6 if columns == 1 else 3.1)
    axes = figure.subplots()
    draw_panel(axes, leaky_path_table(run), panel)
    mark_rank(axes, run.task.rank)
    legend_above(figure, axes.get_lines())
    name_run(figure, run)
    return figure


def draw_panel(axes: Axes, table: pd.DataFrame, panel: Panel, **settings: Any) -> None:
    """Draw the columns of a panel that the table has, each in its colour, on the scale of the panel."""
    for name, label in panel.series.items():
        if name in table and table[name].notna().any():
            _, colour, marker = SERIES[name]
            known = table[[panel.x, name]].dropna()
            style = {"color": colour, "marker": marker, "label": as_formula(label)}
            axes.plot(known[panel.x], known[name], **(style | settings))
    axes.set(ylabel=panel.y, xlabel=POSITION if panel.x == "p" else panel.x)
    if panel.x == "p":
        axes.set_xlim(-0.02, 1.02)
    scale_axis(axes, panel.axis)


def scale_axis(axes: Axes, kind: str) -> None:
    """Scale the vertical axis of what was drawn; dimensions are linear up to 5 and logarithmic beyond.

    Its label and a grey line say where the scale changes.
    """
    from matplotlib.ticker import FixedLocator, LogLocator, NullLocator, StrMethodFormatter

    low, high = axes.dataLim.intervaly
    if kind == "unit":
        axes.set_ylim(-0.03, 1.04)
    if kind not in ("log", "symlog") or (kind == "symlog" and max(-low, high) <= LINEAR):
        return
    if kind == "log":
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    else:
        axes.set_yscale("symlog", linthresh=LINEAR, linscale=2.2)
        across: Any = {"transform": axes.get_yaxis_transform(), "colors": GREY, "linewidth": 0.5, "zorder": 0}
        axes.hlines(LINEAR, 0, 1, **across)
        axes.set_ylabel(f"{axes.get_ylabel()}\n(linear up to {LINEAR:g}, then logarithmic)")
        axes.yaxis.set_major_locator(FixedLocator(_TICKS))
    axes.autoscale_view(scalex=False)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def as_formula(label: str) -> str:
    """Return a label with its indices as formulas: `A_p` as `$A_p$`."""
    return re.sub(r"\w_\w", r"$\g<0>$", label)


def draw_weight_spectra(axes: Axes, run: LeakyRun) -> None:
    """Draw the spectra of W_p of a run, with L̃ as a dotted line."""
    measures, depth = run.measures, run.design.effective_depth
    if measures.weight_spectra is None:
        raise InputError("spectra: expected a path with weights, got one through representations alone")
    _draw_spectra(axes, measures.layers["p"], measures.weight_spectra, run, "singular values of $W_p$")
    if depth > 0:
        axes.axhline(depth, color=DARK, linestyle=":", linewidth=0.8)
        where: Any = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "xytext": (3, 0)}
        axes.annotate("L̃", (1, depth), va="center", fontsize=NOTE_SIZE, **where)


def name_spectra(figure: Figure, run: LeakyRun, *, steps: bool = False) -> None:
    """Add a legend for the lines of spectra, and for the steps."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=GREY, linewidth=0.7, label="others" if run.task.rank else "all")]
    if run.task.rank:
        label = f"largest {run.task.rank}, as many as the rank k* of the task"
        handles.insert(0, Line2D([], [], color=BLUE, linewidth=1.2, marker="o", label=label))
    if steps:
        handles.append(Line2D([], [], color=STEP, linestyle="", marker="|", markersize=8, label="layers"))
    legend_above(figure, handles)


def name_run(figure: Figure, run: LeakyRun) -> None:
    """Write under the figure which network it shows."""
    design, crit = run.design, run.measures.summary["crit"]
    parts = [
        f"L̃ = {design.effective_depth:g}",
        f"L = {design.layers}",
        f"{design.scheme} steps",
        f"seed {design.seed}",
        f"γ₀ = {run.measures.gamma0:g}",
    ]
    note_below(figure, parts if math.isnan(crit) else [*parts, f"crit {crit:.2g}"])


def mark_rank(axes: Axes, rank: int | None) -> list[Line2D]:
    """Draw a dashed line at k*, where it is known."""
    if rank is None:
        return []
    label = f"k* = {rank}, rank of the task"
    return [axes.axhline(rank, color=DARK, linestyle="--", linewidth=0.8, label=label, zorder=0)]


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
    axes.set(ylabel=label, xlabel=POSITION, xlim=(-0.02, 1.02))


def _networks(axes: Axes, table: pd.DataFrame, name: str, label: str) -> Line2D:
    """Draw a point for each network, hollow where it is not critical, and a line through the medians."""
    from matplotlib.lines import Line2D

    _, colour, marker = SERIES[name]
    median = table.groupby("effective_depth")[name].median()
    label = as_formula(label)
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
        Line2D([], [], color=DARK, alpha=0.45, linewidth=2, label="range over p and seeds"),
    ]
    if (table["crit"] > CRITICAL).any():
        ring: Any = {"marker": "o", "markerfacecolor": "white", "linestyle": ""}
        handles.append(Line2D([], [], color=DARK, label="open: not at a critical point", **ring))
    legend_above(figure, handles)
