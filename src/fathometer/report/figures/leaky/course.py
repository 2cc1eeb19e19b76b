"""One network along p and along training: its dimensions, and how it was trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fathometer.errors import InputError
from fathometer.leaky import LeakyRun
from fathometer.leaky.measures import CRITICAL
from fathometer.report.figures.leaky.paths import along, mark_rank, name_run, plain_log
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
    note_below,
)
from fathometer.report.leaky_tables import Results, usual_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@for_print
def plot_ranks(results: Results, *, columns: Columns = 2) -> Figure:
    """How many dimensions along p: cost of identity, stable ranks of A_p and of W_p, and k*.

    Args:
        results: a run, or a sweep of which `usual_run` is shown.
        columns: 1 or 2, the width in columns of a page.
    """
    run = usual_run(results)
    points, layers = run.measures.points, run.measures.layers
    figure = column_figure(columns, 2.5 if columns == 1 else 3.0)
    axes = figure.subplots()
    axes.plot(points["p"], points["cost_of_identity"], "s-", color=ORANGE, label="COI")
    axes.plot(points["p"], points["stable_rank"], "o--", color=BLUE, label="stable rank of $A_p$")
    if layers["weight_stable_rank"].notna().any():
        axes.plot(layers["p"], layers["weight_stable_rank"], "^-.", color=GREEN, label="stable rank of $W_p$")
    mark_rank(axes, run.task.rank)
    shown = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.get_lines()])
    shown = shown[shown > 0]
    axes.set_yscale("log")
    plain_log(axes, 0.8 * float(shown.min()), 1.25 * float(shown.max()))
    axes.set_ylabel("dimensions")
    along(axes)
    legend_above(figure, axes.get_lines())
    name_run(figure, run)
    return figure


@for_print
def plot_training(results: Results, *, columns: Columns = 2) -> Figure:
    """Error, weight decay and `crit` along training: of one network, or of all in a sweep.

    Below the dashed line a network counts as critical.

    Args:
        results: a run or a sweep.
        columns: 1 or 2, the width in columns of a page.
    """
    from matplotlib.lines import Line2D

    runs = [results] if isinstance(results, LeakyRun) else list(results.runs)
    if all(len(run.history) == 0 for run in runs):
        raise InputError("training: expected a history of some epochs, got none")
    figure = column_figure(columns, 3.2 if columns == 1 else 3.4)
    top, bottom = figure.subplots(2, 1, sharex=True)
    faint = max(0.25, 1 / len(runs) ** 0.5)
    for run in runs:
        history = run.history
        for axes, column, colour, line in (
            (top, "error", BLUE, "-"),
            (top, "decay", PURPLE, "--"),
            (bottom, "crit", RED, "-"),
        ):
            axes.plot(history["epoch"], history[column], color=colour, linestyle=line, alpha=faint)
    bottom.axhline(CRITICAL, color=DARK, linestyle="--", linewidth=0.8)
    for axes in (top, bottom):
        axes.set_yscale("log")
    top.set_ylabel("loss")
    bottom.set_ylabel("crit")
    bottom.set_xlabel("epoch")
    looks: list[dict[str, Any]] = [
        {"label": "error (MSE)", "color": BLUE},
        {"label": "weight decay", "color": PURPLE, "linestyle": "--"},
        {"label": "crit", "color": RED},
    ]
    legend_above(figure, [Line2D([], [], **each) for each in looks])
    if isinstance(results, LeakyRun) or len(runs) == 1:
        name_run(figure, runs[0])
    else:
        note_below(figure, [f"{len(runs)} networks"])
    return figure
