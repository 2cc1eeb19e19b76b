"""One network along p: its spectra (Figure 1b), its energies (Figure 1c), and its affinity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fathometer.errors import InputError
from fathometer.leaky import LeakyRun
from fathometer.report.figures.style import (
    BLUE,
    DARK,
    GREY,
    NOTE_SIZE,
    ORANGE,
    PURPLE,
    RED,
    Columns,
    column_figure,
    for_print,
    legend_above,
    note_below,
)
from fathometer.report.leaky_tables import DECADES, LINEAR, Results, bottleneck_stretches, usual_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEP = "#d5dade"  # places of the layers

_ENERGIES = {
    "potential": ("potential (COI)", ORANGE, "s"),
    "kinetic": ("kinetic", PURPLE, "^"),
    "hamiltonian": (r"$-2\mathcal{H}/\tilde{L}$", BLUE, "o"),
    "hamiltonian_stable": (r"stable $-2\mathcal{H}_\gamma/\tilde{L}$", RED, "D"),
}


@for_print
def plot_spectra(results: Results, *, columns: Columns = 2) -> Figure:
    """Singular values of A_p and of W_p along p (Figure 1b): the first k* in colour, the others grey.

    W_l stands at p_{l−1}, where its layer begins. Inside the bottleneck it has k* singular values near L̃,
    the dotted line.
    """
    run = usual_run(results)
    measures = run.measures
    figure = column_figure(columns, 4.2 if columns == 1 else 2.6)
    left, right = figure.subplots(*((2, 1) if columns == 1 else (1, 2)))
    draw_spectra(left, measures.points["p"], measures.spectra, run, "singular values of $A_p$")
    draw_weight_spectra(right, run)
    name_spectra(figure, run)
    name_run(figure, run)
    return figure


@for_print
def plot_energies(results: Results, *, columns: Columns = 2) -> Figure:
    """Kinetic and potential energy, H and the stable H along p, in dimensions (Figure 1c).

    The parts are ‖∂A‖²/L̃² and ‖A‖² in (K + γI)⁻¹; their difference is the stable −2H_γ/L̃.
    """
    run = usual_run(results)
    if run.design.effective_depth <= 0:
        raise InputError("energies: expected L̃ > 0, got a plain ResNet (L̃ = 0), which has no Hamiltonian")
    layers = run.measures.layers
    figure = column_figure(columns, 2.6 if columns == 1 else 3.2)
    axes = figure.subplots()
    for name, (label, colour, marker) in _ENERGIES.items():
        axes.plot(layers["p"], layers[name], label=label, color=colour, marker=marker)
    mark_rank(axes, run.task.rank)
    dimension_axis(axes, [float(value) for name in _ENERGIES for value in layers[name]])
    axes.set_ylabel("dimensions")
    along(axes)
    legend_above(figure, axes.get_lines())
    name_run(figure, run)
    return figure


@for_print
def plot_affinity(results: Results, *, columns: Columns = 2) -> Figure:
    """The affinity score of σ along p, with ‖A₋‖/‖A‖, above the cost of identity: both papers in one.

    Inside the bottleneck, shaded, where the cost of identity is within half a dimension of its least, A is
    nearly non-negative (Proposition 5), so that ReLU acts as the identity, and its affinity score is near 1.
    """
    run = usual_run(results)
    points = run.measures.points
    if points["affinity"].isna().all():
        raise InputError("affinity: expected a score at some p, got none; measure with affinity=True")
    figure = column_figure(columns, 3.2 if columns == 1 else 3.6)
    top, bottom = figure.subplots(2, 1, sharex=True)
    affinity = f"affinity score of {run.design.sigma}"
    top.plot(points["p"], points["affinity"], "o-", color=BLUE, label=affinity)
    top.plot(points["p"], points["negative"], "s-", color=RED, label=r"$\|A_-\|/\|A\|$")
    top.set(ylim=(-0.03, 1.04), ylabel="affinity, share of $A_-$")
    cost = points["cost_of_identity"]
    bottom.plot(points["p"], cost, "^-", color=PURPLE, label="COI")
    mark_rank(bottom, run.task.rank)
    bottom.set_yscale("log")
    plain_log(bottom, 0.7 * min(cost.min(), run.task.rank or cost.min()), 1.4 * cost.max())
    bottom.set_ylabel("cost of identity\n(dimensions)")
    for axes in (top, bottom):
        _shade(axes, points)
        along(axes)
    top.set_xlabel("")
    legend_above(figure, [*top.get_lines(), *bottom.get_lines()])
    name_run(figure, run)
    return figure


def draw_weight_spectra(axes: Axes, run: LeakyRun) -> None:
    """The spectra of W_p of a run, with L̃ as a dotted line."""
    measures = run.measures
    if measures.weight_spectra is None:
        raise InputError("spectra: expected a path with weights, got one through representations alone")
    draw_spectra(axes, measures.layers["p"], measures.weight_spectra, run, "singular values of $W_p$")
    depth = run.design.effective_depth
    if depth > 0:
        axes.axhline(depth, color=DARK, linestyle=":", linewidth=0.8)
        axes.annotate(
            r"$\tilde{L}$",
            (1, depth),
            xycoords=("axes fraction", "data"),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=NOTE_SIZE,
            color=DARK,
        )


def draw_spectra(
    axes: Axes, p: pd.Series[float], spectra: np.ndarray[Any, Any], run: LeakyRun, label: str
) -> None:
    """A line for each singular value, `[places, number]`, over four decades at most."""
    rank = run.task.rank or 0
    for number, values in reversed(list(enumerate(spectra.T))):
        leading = number < rank
        axes.plot(
            p,
            values,
            color=BLUE if leading else GREY,
            linewidth=1.2 if leading else 0.4,
            marker="o" if leading else None,
            label=f"$s_{{{number + 1}}}$",
        )
    top = float(spectra.max()) or 1.0
    axes.set_yscale("log")
    axes.set_ylim(max(top * 10.0**-DECADES, float(spectra.min()) / 2), top * 2)
    axes.set_ylabel(label)
    along(axes)


def mark_rank(axes: Axes, rank: int | None) -> None:
    """A dashed line at k*, where it is known."""
    if rank is not None:
        axes.axhline(rank, color=DARK, linestyle="--", linewidth=0.8, label=f"$k^* = {rank}$", zorder=0)


def dimension_axis(axes: Axes, values: Sequence[float]) -> None:
    """A vertical axis of dimensions: linear from −5 to 5, logarithmic beyond, where values go so far."""
    shown = np.array(values)[np.isfinite(values)]
    low, high = (float(shown.min()), float(shown.max())) if len(shown) else (0.0, 1.0)
    low, high = min(low, 0.0), max(high, 1.0)
    if max(-low, high) <= LINEAR:
        margin = 0.05 * (high - low)
        axes.set_ylim(low - margin, high + margin)
        return
    axes.set_yscale("symlog", linthresh=LINEAR, linscale=2.2)
    powers = [10.0**power for power in range(2, 9)]
    ticks = [*(-power for power in powers), -10.0, -4.0, -2.0, *range(6), 10.0, *powers]
    low = low - 0.5 if low >= -LINEAR else 1.3 * low
    high = high + 0.5 if high <= LINEAR else 1.3 * high
    inside = [tick for tick in ticks if low <= tick <= high]
    axes.set_yticks(inside, [f"{tick:g}".replace("-", "−") for tick in inside])
    axes.set_yticks([], minor=True)
    axes.set_ylim(low, high)


def plain_log(axes: Axes, low: float, high: float) -> None:
    """Ticks 1, 10, … on a logarithmic axis, or 1, 2, 5, …, as plain numbers."""
    factors = (1, 2, 5) if high < 100 * low else (1,)
    ticks = [factor * 10.0**power for power in range(-6, 9) for factor in factors]
    inside = [tick for tick in ticks if low <= tick <= high]
    axes.set_yticks(inside, [f"{tick:g}" for tick in inside])
    axes.set_yticks([], minor=True)
    axes.set_ylim(low, high)


def along(axes: Axes) -> None:
    """What every axis along p shares."""
    axes.set_xlabel("$p$")
    axes.set_xlim(-0.02, 1.02)


def name_run(figure: Figure, run: LeakyRun) -> None:
    """Which network it is, under the figure."""
    design, crit = run.design, run.measures.summary["crit"]
    parts = [
        rf"$\tilde{{L}}$ = {design.effective_depth:g}",
        f"$L$ = {design.layers}",
        f"{design.scheme} steps",
        f"seed {design.seed}",
        rf"$\gamma_0$ = {run.measures.gamma0:g}",
    ]
    note_below(figure, parts if math.isnan(crit) else [*parts, f"crit {crit:.2g}"])


def name_spectra(figure: Figure, run: LeakyRun, *, steps: bool = False) -> None:
    """A legend of the lines of `draw_spectra`, and of the steps."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=GREY, linewidth=0.7, label="others" if run.task.rank else "all")]
    if run.task.rank:
        label = f"first $k^* = {run.task.rank}$"
        handles.insert(0, Line2D([], [], color=BLUE, linewidth=1.2, marker="o", label=label))
    if steps:
        handles.append(Line2D([], [], color=STEP, linestyle="", marker="|", markersize=8, label=r"$p_\ell$"))
    legend_above(figure, handles)


def _shade(axes: Axes, points: pd.DataFrame) -> None:
    """The bottleneck."""
    for begin, end in bottleneck_stretches(points):
        axes.axvspan(begin, end, color=BLUE, alpha=0.1, linewidth=0, zorder=0)
