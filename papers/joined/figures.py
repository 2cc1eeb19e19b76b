"""Pictures of the layers of many Leaky ResNets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fathometer.report import DARK, column_figure, for_print, legend_above, note_below, series_style
from papers.affinity.trained_figures import shades

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANELS = {
    "affinity": "affinity score of ReLU",
    "negative": r"$\|A_-\|/\|A\|$",
    "cost_of_identity": "cost of identity",
}
_PREDICTORS = {
    "cost_of_identity": "cost of identity",
    "stable_rank": r"stable rank $\|A\|_*^2/\|A\|^2$",
    "stable_rank_op": r"stable rank $\|A\|^2/\|A\|_{op}^2$",
    "ridge_rank": "ridge rank",
    "negative": r"$\|A_-\|/\|A\|$ itself",
}


@for_print
def plot_layers(layers: pd.DataFrame, rank: int) -> Figure:
    """Draw affinity, negative part and cost of identity along p, for the networks of one rank, by L̃.

    Lines are means over seeds, bands reach over all seeds; thick where every seed is in its bottleneck.
    """
    from matplotlib.lines import Line2D

    figure = column_figure(2, 2.4)
    chosen = layers[layers["rank"] == rank]
    depths = sorted(chosen["effective_depth"].unique())
    colours = shades(len(depths))
    for axes, (name, label) in zip(figure.subplots(1, 3), _PANELS.items(), strict=True):
        for colour, depth in zip(colours, depths, strict=True):
            groups = chosen[chosen["effective_depth"] == depth].groupby("p")
            mean, inside = groups[name].mean(), groups["inside"].all()
            axes.plot(mean.index, mean, color=colour)
            axes.plot(mean.index, mean.where(inside), color=colour, linewidth=2.6)
            axes.fill_between(
                mean.index, groups[name].min(), groups[name].max(), color=colour, alpha=0.2, lw=0
            )
        axes.set(xlabel="$p$", title=label)
        if name == "cost_of_identity":
            axes.set_yscale("log")
            axes.axhline(rank, color=DARK, linestyle="--", linewidth=0.8)
    handles = [
        Line2D([], [], color=colour, label=rf"$\tilde{{L}} = {depth:g}$")
        for colour, depth in zip(colours, depths, strict=True)
    ]
    handles.append(Line2D([], [], color=DARK, linestyle="--", linewidth=0.8, label=f"$k = {rank}$"))
    legend_above(figure, handles)
    seeds = chosen["seed"].nunique()
    note_below(figure, [f"mean of {seeds} seeds", "bands: all of them", "thick: inside the bottleneck"], "; ")
    return figure


@for_print
def plot_finding(
    layers: pd.DataFrame,
    along: Mapping[str, Mapping[float, Mapping[str, float]]],
    errors: Mapping[str, Mapping[str, float]],
    without: float,
) -> Figure:
    """Draw the gap and the negative part; rank correlations of the predictors by L̃; held-out errors.

    `along` is by predictor and L̃, `errors` by predictor; `without` is the error without one.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    figure = column_figure(2, 2.7)
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.25, 1.25, 0.8])
    depths = sorted(layers["effective_depth"].unique())
    for colour, depth in zip(shades(len(depths)), depths, strict=True):
        for inside, face in ((False, "none"), (True, colour)):
            part = layers[(layers["effective_depth"] == depth) & (layers["inside"] == inside)]
            left.scatter(
                part["negative"], part["gap"], s=7, linewidths=0.5, edgecolors=[colour], facecolors=face
            )
    left.set(xscale="log", yscale="log", xlabel=r"$\|A_-\|/\|A\|$", ylabel="1 − affinity")
    left.set_title("all layers; filled: bottleneck")
    scale = ScalarMappable(Normalize(0, len(depths)), ListedColormap(shades(len(depths))))
    bar = figure.colorbar(scale, ax=left, ticks=np.arange(len(depths)) + 0.5, aspect=30)
    bar.ax.set_yticklabels([f"{depth:g}" for depth in depths])
    bar.set_label(r"$\tilde{L}$", rotation=0)
    places = np.arange(len(depths))
    for number, (name, found) in enumerate(along.items()):
        style = series_style(number)
        values = [found[depth] for depth in depths]
        middle.errorbar(
            places + 0.08 * (number - (len(along) - 1) / 2),
            [value["value"] for value in values],
            _arms(values, "value"),
            label=_PREDICTORS[name],
            capsize=1.5,
            elinewidth=0.7,
            **style,
        )
    middle.set_xticks(places, [f"{depth:g}" for depth in depths])
    middle.set(xlabel=r"$\tilde{L}$", title="rank correlation with 1 − affinity,\ninner layers")
    for number, (_, error) in enumerate(errors.items()):
        bars = {"elinewidth": 0.7, "ecolor": DARK, "capsize": 2}
        right.bar(
            number,
            error["error"],
            yerr=_arms([error], "error"),
            color=series_style(number)["color"],
            error_kw=bars,
        )
    right.axhline(without, color=DARK, linestyle="--", linewidth=0.8)
    right.set_xticks([])
    right.set_title("error of 1 − affinity,\nheld-out seed")
    handles, _ = middle.get_legend_handles_labels()
    legend_above(figure, handles)
    note_below(figure, ["means with 95 % intervals over seeds", "dashed: without a predictor"], "; ")
    return figure


def _arms(values: Sequence[Mapping[str, float]], name: str) -> list[list[float]]:
    """Compute lengths of error bars, below and above."""
    low, high = [v[name] - v[f"{name}_low"] for v in values], [v[f"{name}_high"] - v[name] for v in values]
    return [low, high]
