"""Step schemes: test errors (Figure 2a), spectra and steps (2b), paths in a plane (2c)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fathometer.errors import InputError
from fathometer.leaky import LeakySweep
from fathometer.leaky.schemes import (
    BASELINE,
    CONFIDENCE,
    paired_differences,
    project_paths,
    seed_differences,
)
from fathometer.report.figures.leaky import STEP, draw_weight_spectra, name_run, name_spectra
from fathometer.report.figures.style import (
    COLOUR_MAP,
    DARK,
    GREY,
    WIDTHS,
    Columns,
    column_figure,
    for_print,
    legend_above,
    note_below,
)
from fathometer.report.leaky_tables import SCHEME_LOOKS, RunOrSweep, default_run, error_table, scheme_paths

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


@for_print
def plot_errors(sweep: LeakySweep | pd.DataFrame, *, columns: Columns = 2) -> Figure:
    """Plot the test error against L for each scheme, and beside it what the scheme changes (Figure 2a).

    Left: means over seeds. Right: the difference to equidistant steps within each seed as points, their mean
    with its 95 % interval (Student) as a bar; below 0 is better.

    Args:
        sweep: networks that differ only in scheme, L and seed, or their `held_out_errors`.
        columns: 1 or 2, the width in columns of a page.
    """
    pairs = paired_differences(sweep)
    figure = column_figure(columns, 4.4 if columns == 1 else 2.8)
    left, right = figure.subplots(*((2, 1) if columns == 1 else (1, 2)))
    handles = _draw_test_errors(left, sweep)
    _draw_differences(right, sweep)
    for axes in (left, right):
        axes.set_xlabel("layers L")
        axes.margins(x=0.08)
    seeds = sorted(set(pairs["seeds"]))
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    where = ("above", "below") if columns == 1 else ("left", "right")
    parts = [
        f"{where[0]}: means over seeds (standard deviation {error_table(sweep)['std'].median():.2g})",
        f"{where[1]}: differences in {count} seeds, mean with {CONFIDENCE:.0%} interval",
    ]
    note_below(figure, parts, "; ")
    legend_above(figure, handles)
    return figure


@for_print
def plot_steps(sweep: LeakySweep, *, columns: Columns = 2) -> Figure:
    """Plot singular values of W_p of the adaptive run with the most layers, p_l as grey lines (Figure 2b)."""
    runs = [run for run in sweep.trained if run.design.scheme == "adaptive"]
    if not runs:
        raise InputError(
            "steps: expected a network with adaptive steps, got none; train one with scheme adaptive"
        )
    run = min(runs, key=lambda run: (-run.design.layers, run.design.seed))
    figure = column_figure(columns, 2.4 if columns == 1 else 3.0)
    axes = figure.subplots()
    for place in run.path.places.tolist():
        axes.axvline(place, color=STEP, linewidth=0.8, zorder=0, gid="step")
    draw_weight_spectra(axes, run)
    name_spectra(figure, run, steps=True)
    name_run(figure, run)
    return figure


@for_print
def plot_plane(sweep: LeakySweep, *, columns: Columns = 2) -> Figure:
    """Plot the paths A_p of the schemes in the plane of a joint PCA, a dot at each layer (Figure 2c).

    Shown are networks of one L and seed: the most layers, then the lowest seed.
    """
    table, runs, explained = scheme_paths(sweep)
    paths = [part[["x", "y"]].to_numpy() for _, part in table.groupby("scheme", sort=False)]
    figure, axes = plane_figure(paths, explained, columns)
    for run, path in zip(runs, paths, strict=True):
        colour, marker = SCHEME_LOOKS[run.design.scheme]
        axes.plot(*path.T, color=colour, marker=marker, linewidth=0.8, label=run.design.scheme)
    design = runs[0].design
    parts = [f"L̃ = {design.effective_depth:g}", f"L = {design.layers}", f"seed {design.seed}"]
    note_below(figure, parts)
    legend_above(figure, axes.get_lines())
    return figure


@for_print
def plot_projection(results: RunOrSweep, *, columns: Columns = 2) -> Figure:
    """Plot the path A_p of one network in the plane of its own PCA, a dot at each layer, coloured by p."""
    run = default_run(results)
    plane = project_paths([run])
    (path,) = plane.paths
    figure, axes = plane_figure([path], plane.explained, columns)
    legend_above(figure, axes.get_lines())
    axes.plot(*path.T, color=GREY, linewidth=0.8, zorder=1)
    dots = axes.scatter(path[:, 0], path[:, 1], s=14, c=run.path.places.numpy(), cmap=COLOUR_MAP, zorder=2)
    figure.colorbar(dots, ax=axes, label="p", aspect=25, pad=0.01).outline.set_visible(False)
    name_run(figure, run)
    return figure


def plane_figure(
    paths: Sequence[np.ndarray[Any, Any]], explained: Sequence[float], columns: Columns
) -> tuple[Figure, Axes]:
    """Return a figure with the same unit on both axes, as high as the paths need, with their ends marked."""
    breadth, height = np.ptp(np.concatenate(paths), axis=0)
    share = float(np.clip(height / (breadth or 1.0), 0.42, 0.8))
    figure = column_figure(columns, 0.8 + 0.85 * WIDTHS[columns] * share)
    axes = figure.subplots()
    for label, place, mark in (("p = 0, input", 0, "o"), ("p = 1, output", -1, "s")):
        ends = np.array([path[place] for path in paths])
        ring: Any = {"markersize": 8, "markerfacecolor": "none", "linestyle": "", "zorder": 3}
        axes.plot(*ends.T, color=DARK, marker=mark, label=label, **ring)
    axes.margins(0.08, 0.14)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel(f"first principal component ({explained[0]:.0%})")
    axes.set_ylabel(f"second ({explained[1]:.0%})")
    return figure, axes


def _draw_test_errors(axes: Axes, sweep: LeakySweep | pd.DataFrame) -> list[Line2D]:
    table, handles = error_table(sweep), []
    for scheme in (known for known in SCHEME_LOOKS if known in set(table["scheme"])):
        colour, marker = SCHEME_LOOKS[scheme]
        rows = table[table["scheme"] == scheme]
        handles += axes.plot(rows["layers"], rows["mean"], color=colour, marker=marker, label=scheme)
    axes.set_xticks(sorted(set(table["layers"])))
    axes.set_ylabel("test error (MSE)")
    return handles


def _draw_differences(axes: Axes, sweep: LeakySweep | pd.DataFrame) -> None:
    pairs, each = paired_differences(sweep), seed_differences(sweep)
    for scheme, offset in _offsets(pairs["scheme"], pairs["layers"]).items():
        colour, marker = SCHEME_LOOKS[scheme]
        points, rows = each[each["scheme"] == scheme], pairs[pairs["scheme"] == scheme]
        faint: Any = {"s": 8, "alpha": 0.45, "linewidths": 0}
        axes.scatter(points["layers"] + offset, points["difference"], color=colour, **faint)
        ends = [rows["mean"] - rows["low"], rows["high"] - rows["mean"]]
        style: Any = {"color": colour, "marker": marker, "markersize": 4, "capsize": 2, "linestyle": ""}
        axes.errorbar(rows["layers"] + 1.6 * offset, rows["mean"], yerr=ends, label=scheme, **style)
    axes.axhline(0, color=DARK, linewidth=0.6)
    axes.set_xticks(sorted(set(pairs["layers"])))
    axes.set_ylabel(f"test error minus that\nof {BASELINE} steps")


def _offsets(schemes: Iterable[str], layers: Iterable[int]) -> dict[str, float]:
    """Return a small shift for each scheme, so that bars do not cover each other."""
    present = set(schemes)
    known = [scheme for scheme in SCHEME_LOOKS if scheme in present]
    closest = min(np.diff(sorted(set(layers))), default=1.0)
    middle = (len(known) - 1) / 2
    return {scheme: 0.15 * float(closest) * (i - middle) for i, scheme in enumerate(known)}
