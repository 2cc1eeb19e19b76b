"""Step schemes: test errors (Figure 2a), spectra and steps (Figure 2b), paths in a plane (Figure 2c)."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np

from fathometer.errors import InputError
from fathometer.leaky import LeakySweep
from fathometer.leaky.plan import Scheme
from fathometer.leaky.schemes import (
    BASELINE,
    CONFIDENCE,
    held_out_errors,
    paired_differences,
    project_paths,
    seed_differences,
)
from fathometer.report.figures.leaky.paths import STEP, draw_weight_spectra, name_run, name_spectra
from fathometer.report.figures.leaky.plane import plane_figure
from fathometer.report.figures.style import (
    BLUE,
    DARK,
    GREEN,
    ORANGE,
    RED,
    Columns,
    column_figure,
    for_print,
    legend_above,
    note_below,
)
from fathometer.report.leaky_tables import comparable_schemes, trained

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOOKS = {
    "equidistant": (BLUE, "o"),
    "irregular": (ORANGE, "s"),
    "adaptive": (RED, "^"),
    "given": (GREEN, "D"),
}


@for_print
def plot_errors(sweep: LeakySweep, *, columns: Columns = 2) -> Figure:
    """Test error against L for each scheme, and beside it what the scheme changes (Figure 2a).

    Left: means over seeds, with one standard deviation. Right: the difference to equidistant steps within
    each seed as points, their mean with its 95 % interval (Student) as a bar; below 0 is better.
    """
    pairs = paired_differences(sweep)
    figure = column_figure(columns, 4.4 if columns == 1 else 2.8)
    left, right = figure.subplots(*((2, 1) if columns == 1 else (1, 2)))
    _draw_errors(left, sweep)
    _draw_differences(right, sweep)
    for axes in (left, right):
        axes.set_xlabel("layers $L$")
        axes.margins(x=0.08)
    seeds = sorted(set(pairs["seeds"]))
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    where = ("above", "below") if columns == 1 else ("left", "right")
    parts = [
        f"{where[0]}: mean and standard deviation over seeds",
        f"{where[1]}: {count} seeds each, and the mean with its {CONFIDENCE:.0%} interval",
    ]
    note_below(figure, parts, "; ")
    handles = [bar.lines[0] for bar in left.containers]
    for handle, bar in zip(handles, left.containers, strict=True):
        handle.set_label(str(bar.get_label()))
    legend_above(figure, handles)
    return figure


@for_print
def plot_steps(sweep: LeakySweep, *, columns: Columns = 2) -> Figure:
    """Singular values of W_p of the adaptive run with the most layers, with p_l as grey lines (Figure 2b)."""
    runs = [run for run in trained(sweep) if run.design.scheme == "adaptive"]
    if not runs:
        raise InputError("steps: expected a network with adaptive steps, got none; train scheme='adaptive'")
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
    """The paths A_p of the schemes in the plane of a joint PCA, a dot at each layer (Figure 2c).

    Of networks that differ in scheme, L and seed alone, those that `comparable_schemes` takes are shown.
    """
    runs = comparable_schemes(sweep)
    plane = project_paths(runs)
    figure, axes = plane_figure(plane, columns)
    for run, path in zip(runs, plane.paths, strict=True):
        colour, marker = _LOOKS[run.design.scheme]
        axes.plot(*path.T, color=colour, marker=marker, linewidth=0.8, label=run.design.scheme)
    design = runs[0].design
    note_below(
        figure,
        [rf"$\tilde{{L}}$ = {design.effective_depth:g}", f"$L$ = {design.layers}", f"seed {design.seed}"],
    )
    legend_above(figure, axes.get_lines())
    return figure


def _draw_errors(axes: Axes, sweep: LeakySweep) -> None:
    groups = held_out_errors(sweep).groupby(["scheme", "layers"])["test_error"]
    mean, std = groups.mean(), groups.std().fillna(0)
    offsets = _offsets(list(mean.index.unique("scheme")), mean.index.unique("layers").tolist())
    for scheme, offset in offsets.items():
        colour, marker = _LOOKS[scheme]
        axes.errorbar(
            mean[scheme].index.to_numpy() + offset,
            mean[scheme],
            yerr=std[scheme],
            color=colour,
            marker=marker,
            elinewidth=0.7,
            capsize=2,
            label=scheme,
        )
    axes.set_xticks(sorted(mean.index.unique("layers")))
    axes.set_ylabel("test error (MSE)")


def _draw_differences(axes: Axes, sweep: LeakySweep) -> None:
    pairs, each = paired_differences(sweep), seed_differences(sweep)
    offsets = _offsets(list(dict.fromkeys(pairs["scheme"])), pairs["layers"].unique().tolist(), wide=3.0)
    for scheme, offset in offsets.items():
        colour, marker = _LOOKS[scheme]
        points, rows = each[each["scheme"] == scheme], pairs[pairs["scheme"] == scheme]
        axes.scatter(
            points["layers"] + offset, points["difference"], s=8, color=colour, alpha=0.45, linewidths=0
        )
        axes.errorbar(
            rows["layers"] + 1.6 * offset,
            rows["mean"],
            yerr=[rows["mean"] - rows["low"], rows["high"] - rows["mean"]],
            color=colour,
            linestyle="",
            marker=marker,
            markersize=4,
            capsize=2,
            label=scheme,
        )
    axes.axhline(0, color=DARK, linewidth=0.6)
    axes.set_xticks(sorted(set(pairs["layers"])))
    axes.set_ylabel(f"test error less that of {BASELINE}")


def _offsets(schemes: list[str], layers: list[int], wide: float = 1.0) -> dict[str, float]:
    """A little to the side for each scheme, that bars do not cover each other."""
    known = [scheme for scheme in get_args(Scheme) if scheme in schemes]
    least = min(np.diff(sorted(layers)), default=1.0)
    middle = (len(known) - 1) / 2
    return {scheme: 0.05 * wide * float(least) * (i - middle) for i, scheme in enumerate(known)}
