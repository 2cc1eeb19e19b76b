"""Figures 2 and 6: the activation atlas, polynomials, input ranges."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from fathometer.activations import ActivationAtlas, activation
from fathometer.report.figures.style import BUOY, INK, SEA, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_atlas(atlas: ActivationAtlas) -> Figure:
    """A panel for each activation: box plots of its score over the stds, by mean (Figure 6)."""
    names = list(atlas.baseline.index)
    columns = min(3, len(names))
    rows = math.ceil(len(names) / columns)
    figure = new_figure(4.2 * columns, 2.5 * rows + 0.4)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, name in zip(grid.flat, names, strict=False):
        _boxes(axes, atlas, name)
    for axes in grid.flat[len(names) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("mean of the inputs")
    for axes in grid[:, 0]:
        axes.set_ylabel("affinity score")
    settings = atlas.settings
    figure.suptitle(
        f"Affinity score over Gaussian inputs, {settings.samples} samples in {settings.features} "
        "dimensions; boxes: over stds "
        + ", ".join(f"{s:g}" for s in settings.stds)
        + "; dashed: inputs over the whole interval",
        fontsize=8,
        color=INK,
    )
    return figure


def plot_polynomials(scores: pd.DataFrame) -> Figure:
    """Score against degree, and the polynomials themselves (Figure 2C)."""
    figure = new_figure(8, 3.2)
    left, right = figure.subplots(1, 2)
    x = np.linspace(-1, 1, 200)
    degrees = scores["degree"].to_list()
    for shade, degree in zip(np.linspace(0.25, 1, len(degrees)), degrees, strict=True):
        left.plot(x, x**degree, color=SEA, alpha=shade, label=f"$x^{{{degree}}}$")
    left.legend(fontsize=7)
    left.set_title("on [-1, 1]", fontsize=9)
    right.plot(degrees, scores["score"], "o-", color=BUOY)
    right.set(xlabel="degree", ylabel="affinity score", ylim=(0, 1.05))
    return figure


def plot_ranges(scores: pd.DataFrame) -> Figure:
    """A panel for each activation and range: the part of the curve that the inputs see (Figure 2A, B)."""
    names = list(dict.fromkeys(scores["activation"]))
    per_name = len(scores) // len(names)
    figure = new_figure(2.2 * per_name, 1.9 * len(names) + 0.3)
    grid = figure.subplots(len(names), per_name, squeeze=False)
    reach = max(scores["high"].max(), -scores["low"].min())
    x = np.linspace(-reach, reach, 801)
    for axes, row in zip(grid.flat, scores.to_dict("records"), strict=True):
        name, low, high = row["activation"], row["low"], row["high"]
        y = activation(name)(torch.from_numpy(x)).numpy()
        seen = (x >= low) & (x <= high)
        axes.plot(x, y, color=INK, alpha=0.3, linewidth=1)
        axes.plot(x[seen], y[seen], color=BUOY, linewidth=2.5)
        axes.set_title(f"{name} on [{low:g}, {high:g}]\n{row['score']:.3f}", fontsize=8)
        axes.tick_params(labelsize=6)
    return figure


def _boxes(axes: Axes, atlas: ActivationAtlas, name: str) -> None:
    part = atlas.table[atlas.table["activation"] == name]
    means = sorted(float(mean) for mean in part["mean"].unique())
    step = (means[-1] - means[0]) / max(len(means) - 1, 1) or 1.0
    axes.boxplot(
        [part.loc[part["mean"] == mean, "score"].to_numpy() for mean in means],
        positions=means,
        widths=0.65 * step,
        whis=(0, 100),  # whiskers over the whole range, as in the paper
        manage_ticks=False,
        patch_artist=True,
        medianprops={"color": BUOY, "linewidth": 1.6},
        boxprops={"facecolor": SEA, "alpha": 0.35, "linewidth": 0.6},
        whiskerprops={"linewidth": 0.7},
        capprops={"linewidth": 0.7},
    )
    axes.axhline(atlas.baseline[name], color=INK, linestyle="--", linewidth=0.8)
    axes.set_title(name, fontsize=10, color=INK)
    axes.set_ylim(-0.03, 1.05)
    axes.spines[["top", "right"]].set_visible(False)
