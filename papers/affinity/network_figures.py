"""Figures of networks that only the reproduction needs: raw signatures, tables of correlations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fathometer import Site, Sounding
from fathometer.report import (
    DARK,
    GREY,
    NOTE_SIZE,
    SMALL_SIZE,
    column_figure,
    extend_to_one,
    for_print,
    plain_text,
    point_size,
    series_style,
)
from papers.roles import block_roles, kinds_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEADS = {"cka": "CKA", "r2": "R²"}


@for_print
def plot_raw(soundings: Mapping[str, Sounding]) -> Figure:
    """Draw a panel for each network: its scores along depth, coloured by kind of site.

    The title has the mean standard deviation over batches (Figures 10 and 11).
    """
    across = min(3, len(soundings))
    rows = math.ceil(len(soundings) / across)
    figure = column_figure(2, 1.75 * rows + 0.2)
    grid = figure.subplots(rows, across, squeeze=False, sharey=True)
    for axes, (name, table) in zip(
        grid.flat, site_table(soundings).groupby("network", sort=False), strict=False
    ):
        places = np.arange(len(table))
        axes.plot(places, table["score"], color=GREY, linewidth=0.5, zorder=1)
        for number, kind in enumerate(table["kind"].unique()):
            own = (table["kind"] == kind).to_numpy()
            style = series_style(number) | {"linestyle": "", "markersize": 0.75 * point_size(len(table))}
            axes.errorbar(
                places[own],
                table["score"][own],
                yerr=table["std"][own],
                markeredgewidth=0,
                elinewidth=0.4,
                label=plain_text(kind, 13),
                **style,
            )
        if table["kind"].nunique() > 1:
            axes.legend(
                fontsize=4, ncols=3, handlelength=1, handletextpad=0.1, columnspacing=0.6, framealpha=0.6
            )
        axes.set_title(
            f"{plain_text(str(name), 26)}\n± {table['std'].mean():.4f} over batches", fontsize=NOTE_SIZE
        )
        axes.locator_params(axis="x", integer=True, nbins=5)
    extend_to_one(grid[0, 0], "affinity")  # which all share
    for axes in grid.flat[len(soundings) :]:
        axes.set_visible(False)
    figure.supxlabel("site")
    figure.supylabel("affinity score")
    return figure


def site_table(soundings: Mapping[str, Sounding]) -> pd.DataFrame:
    """Make a row for each network and site: operator, kind, score, its standard deviation over batches."""
    parts = [
        pd.DataFrame(
            {
                "network": name,
                "site": [site.name for site in sounding.sites],
                "operator": [site.operator for site in sounding.sites],
                "kind": _kinds(sounding.sites),
                "score": sounding.signature.to_numpy(),
                "std": sounding.std("affinity").to_numpy(),
            }
        )
        for name, sounding in soundings.items()
    ]
    return pd.concat(parts, ignore_index=True)


def _kinds(sites: Sequence[Site]) -> list[str]:
    roles = block_roles(sites)
    if not roles.ends.any():
        return kinds_of(sites)
    return np.select([roles.ends, roles.inside], ["after sum", "inside"], "others").tolist()


@for_print
def plot_correlations(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw network × metric for each table, side by side, from −1 to 1 (Tables 1 and 2)."""
    rows = max(len(table) for table in tables.values())
    figure = column_figure(2, min(0.16 * rows + 1.2, 8.5))
    grid = figure.subplots(1, len(tables), squeeze=False)[0]
    shown = None
    for axes, (title, table) in zip(grid, tables.items(), strict=True):
        values = table.to_numpy(float)
        shown = axes.imshow(values, cmap="PuOr", vmin=-1, vmax=1, aspect="auto")
        axes.set_title(plain_text(title, 40), fontsize=NOTE_SIZE)
        axes.set_yticks(
            range(len(table)), [plain_text(str(name), 22) for name in table.index], fontsize=SMALL_SIZE
        )
        heads = [_HEADS.get(str(name), plain_text(str(name), 12)) for name in table.columns]
        axes.set_xticks(range(len(heads)), heads, fontsize=SMALL_SIZE)
        axes.xaxis.tick_top()
        axes.set_ylim(rows - 0.5, -0.5)  # cells are as high in all tables
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        _write(axes, values)
    if shown is not None:
        bar = figure.colorbar(shown, ax=list(grid), location="bottom", shrink=0.4, aspect=40, pad=0.02)
        bar.set_label("Pearson correlation with the affinity score", fontsize=NOTE_SIZE)
        bar.outline.set_visible(False)
    return figure


def _write(axes: Axes, values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = "w" if abs(value) > 0.6 else DARK
            axes.text(
                column, row, f"{value:.2f}", ha="center", va="center", fontsize=SMALL_SIZE, color=colour
            )
