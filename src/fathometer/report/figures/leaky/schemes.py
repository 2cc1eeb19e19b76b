"""Step schemes: test errors (Figure 2a), spectra and steps (Figure 2b), paths in a plane (Figure 2c)."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np

from fathometer.errors import InputError
from fathometer.leaky import LeakyRun, LeakySweep
from fathometer.leaky.compare_schemes import (
    BASELINE,
    CONFIDENCE,
    check_alike,
    held_out_errors,
    paired_differences,
    project_paths,
    seed_differences,
)
from fathometer.leaky.plan import Scheme
from fathometer.report.figures.leaky.paths import STEP, draw_weight_spectra, name_run, name_spectra, trained
from fathometer.report.figures.style import BUOY, INK, PALETTE, SEA, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOOKS = {
    "equidistant": (SEA, "o"),
    "irregular": (PALETTE[2], "s"),
    "adaptive": (BUOY, "^"),
    "given": (PALETTE[3], "D"),
}


def plot_errors(sweep: LeakySweep) -> Figure:
    """Test error against L for each scheme, and beside it what the scheme changes (Figure 2a).

    Left: means over seeds, with one standard deviation. Right: the difference to equidistant steps within
    each seed as points, their mean with its 95 % interval (Student) as a bar; below 0 is better.
    """
    pairs = paired_differences(sweep)
    figure = new_figure(9.0, 3.8)
    left, right = figure.subplots(1, 2)
    _draw_errors(left, sweep)
    _draw_differences(right, sweep)
    for axes in (left, right):
        axes.set_xlabel("layers $L$")
        axes.margins(x=0.08)
        axes.spines[["top", "right"]].set_visible(False)
    seeds = sorted(set(pairs["seeds"]))
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    note = f"left: mean and standard deviation over seeds; right: {count} seeds each, and the mean with its "
    figure.supxlabel(f"{note}{CONFIDENCE:.0%} interval", fontsize=8, color=INK)
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=8, frameon=False
    )
    return figure


def plot_steps(sweep: LeakySweep) -> Figure:
    """Singular values of W_p of the adaptive run with the most layers, with p_l as grey lines (Figure 2b)."""
    runs = [run for run in trained(sweep) if run.design.scheme == "adaptive"]
    if not runs:
        raise InputError("steps: expected a network with adaptive steps, got none; train scheme='adaptive'")
    run = min(runs, key=lambda run: (-run.design.layers, run.design.seed))
    figure = new_figure(6.4, 4.0)
    axes = figure.subplots()
    for place in run.path.places.tolist():
        axes.axvline(place, color=STEP, linewidth=1.2, zorder=0, gid="step")
    draw_weight_spectra(axes, run)
    name_spectra(figure, run, steps=True)
    name_run(figure, run)
    return figure


def plot_plane(sweep: LeakySweep, layers: int | None = None, seed: int | None = None) -> Figure:
    """The paths A_p of the schemes of one L and seed in the plane of a joint PCA (Figure 2c).

    A dot stands at each layer.

    Args:
        sweep: networks that differ in scheme, L and seed alone.
        layers: L; if left out, the most that two schemes share.
        seed: if left out, the least.
    """
    runs = _comparable(sweep, layers, seed)
    plane = project_paths(runs)
    breadth, height = np.ptp(np.concatenate(plane.paths), axis=0)
    figure = new_figure(7.0, 1.4 + 6.0 * float(np.clip(height / (breadth or 1.0), 0.3, 0.8)))
    axes = figure.subplots()
    for run, path in zip(runs, plane.paths, strict=True):
        colour, marker = _LOOKS[run.design.scheme]
        axes.plot(*path.T, color=colour, marker=marker, markersize=4, linewidth=1.2, label=run.design.scheme)
    for label, place in (("$p=0$", 0), ("$p=1$", -1)):
        x, y = np.mean([path[place] for path in plane.paths], axis=0)
        axes.annotate(label, (x, y), xytext=(8, 8), textcoords="offset points", fontsize=9, color=INK)
    axes.margins(0.08, 0.14)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel(f"first principal component ({plane.explained[0]:.0%})")
    axes.set_ylabel(f"second ({plane.explained[1]:.0%})")
    axes.spines[["top", "right"]].set_visible(False)
    design = runs[0].design
    note = rf"$\tilde{{L}}$ = {design.effective_depth:g}, $L$ = {design.layers}, seed {design.seed}"
    figure.supxlabel(note, fontsize=8, color=INK)
    figure.legend(loc="outside upper center", ncols=3, fontsize=8, frameon=False)
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
            markersize=5,
            linewidth=1.3,
            elinewidth=0.8,
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
        axes.scatter(points["layers"] + offset, points["difference"], s=14, color=colour, alpha=0.45)
        axes.errorbar(
            rows["layers"] + 1.6 * offset,
            rows["mean"],
            yerr=[rows["mean"] - rows["low"], rows["high"] - rows["mean"]],
            color=colour,
            linestyle="",
            marker=marker,
            markersize=6,
            capsize=3,
            label=scheme,
        )
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_xticks(sorted(set(pairs["layers"])))
    axes.set_ylabel(f"test error less that of {BASELINE}")


def _offsets(schemes: list[str], layers: list[int], wide: float = 1.0) -> dict[str, float]:
    """A little to the side for each scheme, that bars do not cover each other."""
    known = [scheme for scheme in get_args(Scheme) if scheme in schemes]
    least = min(np.diff(sorted(layers)), default=1.0)
    middle = (len(known) - 1) / 2
    return {scheme: 0.05 * wide * float(least) * (i - middle) for i, scheme in enumerate(known)}


def _comparable(sweep: LeakySweep, layers: int | None, seed: int | None) -> list[LeakyRun]:
    """The runs of one L and seed that have two schemes at least, in the order of the schemes."""
    every = trained(sweep)
    found: dict[tuple[int, int], dict[str, LeakyRun]] = {}
    for run in every:
        design = run.design
        if layers in (None, design.layers) and seed in (None, design.seed):
            found.setdefault((-design.layers, design.seed), {})[design.scheme] = run
    enough = {key: runs for key, runs in found.items() if len(runs) >= 2}
    if not enough:
        asked = f" for L = {layers}, seed = {seed}" if (layers, seed) != (None, None) else ""
        raise InputError(
            f"paths: expected two schemes with the same L and seed, got none{asked}; "
            "train `fathometer leaky sweep --schemes equidistant,adaptive`, or grid(design, scheme=[…])"
        )
    check_alike(every, "layers", "scheme")
    runs = enough[min(enough)]
    return [runs[scheme] for scheme in get_args(Scheme) if scheme in runs]
