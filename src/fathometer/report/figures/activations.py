"""Figures 2 and 6: the activation atlas, polynomials, input ranges."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from fathometer.activations import ActivationAtlas, activation
from fathometer.report.figures.style import (
    BLUE,
    COLOUR_MAP,
    GREY,
    NOTE_SIZE,
    RED,
    Columns,
    column_figure,
    for_print,
    legend_above,
    note_below,
    panel_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


@for_print
def plot_activation_atlas(atlas: ActivationAtlas, *, columns: Columns = 2) -> Figure:
    """Plot for each activation its score by the mean of its inputs, a line for each std (Figure 6)."""
    names = list(atlas.baseline.index)
    across = min(columns + 1, len(names))
    figure, panels = panel_figure(columns, len(names), across, 1.35, 0.6, sharey=True)
    for axes, name in zip(panels, names, strict=True):
        handles = _lines(axes, atlas, name)
    for axes in panels[-across:]:
        axes.set_xlabel("mean of the inputs")
    for axes in panels[::across]:
        axes.set_ylabel("affinity score")
    settings = atlas.settings
    parts = [f"Gaussian inputs, {settings.samples} samples in {settings.features} dimensions"]
    note_below(figure, parts)
    legend_above(figure, handles)
    return figure


@for_print
def plot_polynomials(scores: pd.DataFrame, *, columns: Columns = 2) -> Figure:
    """Plot polynomials, and their score against their degree (Figure 2C)."""
    figure = column_figure(columns, 1.8 if columns == 1 else 2.5)
    left, right = figure.subplots(1, 2)
    x = np.linspace(-1, 1, 200)
    degrees = scores["degree"].to_list()
    for shade, degree in zip(np.linspace(0.25, 1, len(degrees)), degrees, strict=True):
        left.plot(x, x**degree, color=BLUE, alpha=shade, label=f"$x^{{{degree}}}$")
    left.set_title("on [−1, 1]")
    right.plot(degrees, scores["score"], "o-", color=RED)
    right.set(xlabel="degree", ylabel="affinity score", ylim=(0, 1.05))
    legend_above(figure, left.get_lines())
    return figure


@for_print
def plot_ranges(scores: pd.DataFrame, *, columns: Columns = 2) -> Figure:
    """Plot for each activation and range the part of the curve that the inputs see (Figure 2A, B)."""
    names = list(dict.fromkeys(scores["activation"]))
    per_name = len(scores) // len(names)
    across = min(per_name, 3 * columns)
    rows = math.ceil(per_name / across)
    figure = column_figure(columns, (1.15 if columns == 1 else 1.3) * len(names) * rows + 0.1)
    grid = figure.subplots(len(names) * rows, across, squeeze=False)
    for axes in grid.flat:
        axes.set_visible(False)
    reach = max(scores["high"].max(), -scores["low"].min())
    x = np.linspace(-reach, reach, 801)
    for place, row in enumerate(scores.to_dict("records")):
        name, low, high = row["activation"], row["low"], row["high"]
        axes = grid[rows * (place // per_name) + place % per_name // across, place % per_name % across]
        axes.set_visible(True)
        y = activation(name)(torch.from_numpy(x)).numpy()
        seen = (x >= low) & (x <= high)
        axes.plot(x, y, color=GREY, linewidth=0.8)
        axes.plot(x[seen], y[seen], color=RED, linewidth=2)
        axes.set_title(f"{name}, {row['score']:.3f}\non [{low:g}, {high:g}]", fontsize=NOTE_SIZE)
        axes.locator_params(nbins=4)
    return figure


def _lines(axes: Axes, atlas: ActivationAtlas, name: str) -> list[Line2D]:
    """Draw a line for each std, darker the smaller it is, and the score over the whole interval."""
    from matplotlib import colormaps

    part, stds = atlas.table[atlas.table["activation"] == name], sorted(atlas.settings.stds)
    shades = colormaps[COLOUR_MAP](np.linspace(0, 0.9, len(stds)))
    lines = []
    for std, shade in zip(stds, shades, strict=True):
        own = part[part["std"] == std].groupby("mean")["score"].mean()  # over seeds, if there are several
        lines += axes.plot(own.index, own, color=tuple(shade), label=f"std {std:g}")
    whole = axes.axhline(atlas.baseline[name], color=RED, linestyle="--", linewidth=0.8)
    whole.set_label("spread over the whole interval")
    axes.set_title(name)
    axes.set_ylim(-0.03, 1.05)
    return [*lines, whole]
