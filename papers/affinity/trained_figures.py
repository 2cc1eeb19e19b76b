"""Figures of networks that were trained several times: means and standard deviations over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fathometer.report import (
    BLUE,
    COLOUR_MAP,
    DARK,
    GREY,
    RED,
    column_figure,
    extend_to_one,
    for_print,
    legend_above,
    note_below,
    plain_text,
    series_style,
)
from papers.images.ensembles import Ensemble, Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

END = "block end (ResNet: after the sum)"
_ROLES = {END: RED, "inside a block": BLUE, "before the blocks": DARK}


@for_print
def plot_residual(groups: Mapping[str, Ensemble]) -> Figure:
    """Draw a column for each architecture: the distribution of its scores, and the scores along depth."""
    figure = column_figure(2, 3.4)
    grid = figure.subplots(2, len(groups), squeeze=False, sharey="row")
    every = np.concatenate([group.scores.ravel() for group in groups.values()])
    edges = np.linspace(every.min(), 1, 21).tolist()
    for (title, group), above, below in zip(groups.items(), *grid, strict=True):
        parts = {role: group.scores[:, chosen].ravel() for role, chosen in _roles(group).items()}
        above.hist(
            list(parts.values()),
            edges,
            weights=[np.full(len(part), 1 / group.scores.size) for part in parts.values()],
            stacked=True,
            color=[_ROLES[role] for role in parts],
        )
        above.set_title(plain_text(title))
        above.set(xlabel="affinity score", xlim=(edges[0] - 0.01, 1.01))
        _along(below, group)
        below.set_xlabel("site, in order of depth")
    grid[0, 0].set_ylabel("share of sites")
    grid[1, 0].set_ylabel("affinity score")
    extend_to_one(grid[1, 0], "affinity")
    legend_above(figure, _role_handles())
    note_below(figure, ["above: all seeds together", "below: mean ± std over seeds"], "; ")
    return figure


@for_print
def plot_robustness(by_size: Mapping[int, Scores], seeds: Scores) -> Figure:
    """Draw signatures by batch size, of the first training, and those of all trainings (Figure 8)."""
    figure = column_figure(2, 2.5)
    left, right = figure.subplots(1, 2, sharey=True)
    for colour, (size, scores) in zip(shades(len(by_size)), by_size.items(), strict=True):
        left.plot(_sites(scores), scores[0], "o-", color=colour, markersize=2.2, label=f"{size} samples")
    right.plot(_sites(seeds), seeds.T, color=GREY, linewidth=0.5)
    _bars(right, seeds, color=RED, marker="o", markersize=2.2)
    left.set(title="one training", ylabel="affinity score")
    right.set_title(f"{len(seeds)} trainings, mean ± std")
    for axes in (left, right):
        axes.set_xlabel("site, in order of depth")
    extend_to_one(left, "affinity")
    legend_above(figure, left.get_legend_handles_labels()[0])
    return figure


@for_print
def plot_training(initial: Scores, before: Scores, after: Scores) -> Figure:
    """Draw torchvision's network at initialisation, and another before and after training (Figure 9)."""
    figure = column_figure(2, 2.5)
    left, right = figure.subplots(1, 2, sharey=True)
    _bars(left, initial, label="at initialisation", **series_style(0))
    _bars(right, before, label="before training", **series_style(1))
    _bars(right, after, label="after training", **series_style(2))
    left.set(xlabel="site, in order of depth", ylabel="affinity score", title="torchvision's VGG-16")
    right.set(xlabel="site, in order of depth", title="VGG-16 for small images")
    extend_to_one(left, "affinity")
    legend_above(figure, [artist for axes in (left, right) for artist in axes.get_legend_handles_labels()[0]])
    note_below(figure, [f"mean ± std over {len(before)} seeds"])
    return figure


@for_print
def plot_depth(groups: Mapping[int, Ensemble], published: Mapping[int, Ensemble]) -> Figure:
    """Draw signatures of ResNets of several depths, and the means of both kinds of sites (Figure 13).

    Both are by depth; `published` has one training each, made elsewhere, and may be empty.
    """
    from matplotlib.lines import Line2D

    figure = column_figure(2, 3.9)
    top, bottom = figure.subfigures(2, 1, squeeze=False)[:, 0]
    above, below = top.subplots(1, len(groups), sharey=True, squeeze=False)[0], bottom.subplots()
    for axes, group in zip(above, groups.values(), strict=True):
        _along(axes, group)
        axes.set_title(plain_text(group.title))
    extend_to_one(above[0], "affinity")
    above[0].set_ylabel("affinity score")
    for role, colour in list(_ROLES.items())[:2]:
        means = np.array([g.scores[:, _roles(g)[role]].mean(1) for g in groups.values()])
        _bars(below, means.T, list(groups), color=colour, marker="o")
        others = [float(g.scores[:, _roles(g)[role]].mean()) for g in published.values()]
        below.plot(list(published), others, color=colour, marker="s", mfc="white", linestyle=":")
    shown = sorted({*groups, *published})
    below.set(xlabel="layers", ylabel="mean score", xscale="log")
    below.set_xticks(shown, [str(depth) for depth in shown])
    below.minorticks_off()
    handles = _role_handles()
    if published:
        handles.append(Line2D([], [], color=DARK, marker="s", mfc="white", ls=":", label="published weights"))
    legend_above(figure, handles)
    figure.supxlabel(f"mean ± std over {means.shape[1]} seeds")
    return figure


@for_print
def plot_deviation(table: pd.DataFrame) -> Figure:
    """Draw how far signatures on other data are from those on the reference (Figure 15)."""
    figure = column_figure(2, 2.7)
    grid = figure.subplots(1, 2)
    titles = {"euclidean": "Euclidean distance", "paper": "DTW distance"}
    for axes, (metric, part) in zip(grid, table.groupby("metric", sort=False), strict=True):
        data = list(dict.fromkeys(part["data"]))
        networks = list(dict.fromkeys(part["network"]))
        for number, network in enumerate(networks):
            own = part[part["network"] == network].pivot(index="seed", columns="data", values="distance")
            places = np.arange(len(data)) + 0.2 * (number - (len(networks) - 1) / 2)
            style = series_style(number) | {"linestyle": "", "label": network}
            _bars(axes, own[data].to_numpy(), places, **style)
        axes.set_xticks(range(len(data)), [plain_text(name, 18).replace(" ", "\n", 1) for name in data])
        axes.set(title=titles[str(metric)])
        axes.set_ylim(bottom=0)
    grid[0].set_ylabel("distance from\nheld-out images")
    legend_above(figure, grid[0].get_legend_handles_labels()[0])
    note_below(figure, [f"mean ± std over {table['seed'].nunique()} seeds"])
    return figure


@for_print
def plot_criteria(values: pd.DataFrame, groups: Sequence[Mapping[str, str]]) -> Figure:
    """Draw each criterion by way of training, as its deviation from the mean over all ways (Table 3).

    `groups` has for each panel, which has a scale of its own, columns and their titles.
    """
    figure = column_figure(2, 2.7)
    methods = list(dict.fromkeys(values["method"]))
    for axes, criteria in zip(figure.subplots(1, len(groups)), groups, strict=True):
        mean = values[list(criteria)].mean()
        for number, method in enumerate(methods):
            own = values.loc[values["method"] == method, list(criteria)]
            apart = 100 * (own - mean) / mean.abs()
            places = np.arange(len(criteria)) + 0.12 * (number - (len(methods) - 1) / 2)
            style = series_style(number) | {"linestyle": "", "label": method}
            _bars(axes, apart.to_numpy(), places, **style)
        axes.set_xticks(range(len(criteria)), list(criteria.values()))
        axes.axhline(0, color=GREY, linewidth=0.6, zorder=0)
    figure.axes[0].set_ylabel("deviation from the mean, %")
    legend_above(figure, figure.axes[0].get_legend_handles_labels()[0])
    note_below(figure, [f"mean ± std over {values['seed'].nunique()} seeds of each way of training"])
    return figure


def _roles(group: Ensemble) -> dict[str, np.ndarray[Any, np.dtype[np.bool_]]]:
    ends, inside = group.roles
    return dict(zip(_ROLES, (ends, inside, ~(ends | inside)), strict=True))


def _along(axes: Axes, group: Ensemble) -> None:
    """Draw mean ± std over seeds at every site, coloured by its role."""
    places, size = _sites(group.scores), 3.0 if group.scores.shape[1] < 40 else 1.8
    axes.plot(places, group.scores.mean(0), color=GREY, linewidth=0.5, zorder=1)
    for role, chosen in _roles(group).items():
        fill = _ROLES[role] if role == END else "white"
        style = {"linestyle": "", "marker": "o", "markersize": size, "color": _ROLES[role], "mfc": fill}
        _bars(axes, group.scores[:, chosen], places[chosen], **style)


def _bars(axes: Axes, scores: Scores, places: Any = None, **style: Any) -> None:
    """Draw mean ± std over the first axis."""
    where = _sites(scores) if places is None else places
    axes.errorbar(where, scores.mean(0), _std(scores), **{"capsize": 1.5, **style})


def _role_handles() -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], ls="", marker="o", color=colour, mfc=colour if role == END else "white", label=role)
        for role, colour in _ROLES.items()
    ]


def _sites(scores: Scores) -> np.ndarray[Any, np.dtype[np.int_]]:
    return np.arange(scores.shape[1])


def _std(scores: Scores) -> Scores:
    """Compute the standard deviation over the first axis; 0 if it has one entry."""
    return scores.std(0, ddof=1) if len(scores) > 1 else np.zeros(scores.shape[1])


def shades(number: int) -> list[tuple[float, float, float, float]]:
    """Return colours from dark to light; the lightest are left out."""
    import matplotlib

    return [tuple(colour) for colour in matplotlib.colormaps[COLOUR_MAP](np.linspace(0, 0.88, number))]
