"""Transformers by layer: MLP, attention and activations as lines, and every gauge as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fathometer.compare.soundings import Soundings
from fathometer.report.figures.soundings import draw_error_bars, extend_to_one, point_size
from fathometer.report.figures.style import (
    DARK,
    LIGHT_GREY,
    MAX_HEIGHT,
    SMALL_SIZE,
    WIDTHS,
    Columns,
    axis_label,
    column_figure,
    for_print,
    legend_above,
    legend_line,
    panel_figure,
    plain_text,
    series_style,
    title_left,
)
from fathometer.report.numbers import number
from fathometer.report.tables import gauge_table, layer_panels, layer_table
from fathometer.results.sounding import Sounding

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MIN_ROW, _MAX_ROW = 0.1, 0.125  # inches: the height of a row of cells
_TITLE, _MARGIN = 0.2, 0.6  # inches: the title of a panel; axis and colour bar


@for_print
def plot_layers(soundings: Soundings, gauge: str | None = None, *, columns: Columns = 2) -> Figure:
    """Plot a gauge by layer, with the residual sum as a dashed line of the same colour.

    One network has a line for each kind of site; several have a panel for each kind, and a line for each
    network. Error bars are one standard deviation over batches. A hollow mark is r2_trimmed, where it differs
    from r2_heldout by more than 0.1: there a few tokens decide R².

    Args:
        soundings: of transformers, with parts.
        gauge: what to show at all kinds of sites; if left out, affinity at activations, r2_heldout at parts.
        columns: 1 or 2, the width in columns of a page.
    """
    table = layer_table(soundings, gauge)
    line, panels = layer_panels(table)
    names, several = list(dict.fromkeys(table[line])), line == "network"
    across = 2 if several and columns == 2 and len(panels) > 1 else 1
    figure, every = panel_figure(columns, len(panels), across, 2.4 if len(panels) == 1 else 1.7, 0.35)
    for place, (axes, (panel, rows)) in enumerate(zip(every, panels.items(), strict=True)):
        for (name, residual), own in rows.groupby([line, "residual"], sort=False, observed=True):
            _line(axes, own, names.index(name), bool(residual))
        if several or place == 0:
            title_left(axes, panel if several else table["network"].iloc[0], WIDTHS[columns] / across - 0.7)
        shown = str(rows["gauge"].iloc[0])
        axes.set_ylabel(axis_label(shown))
        extend_to_one(axes, shown)
        axes.set_xlim(-0.5, table["layer"].max() + 0.5)
        axes.locator_params("x", integer=True)
        if place + across >= len(panels):
            axes.set_xlabel("layer")
    legend_above(figure, _legend(table, names))
    return figure


def _line(axes: Axes, rows: pd.DataFrame, number: int, residual: bool) -> None:
    """Draw a series, and r2_trimmed beside it where a few tokens decide."""
    style: dict[str, Any] = {"linestyle": "--", "marker": ""} if residual else {"linestyle": "-"}
    draw_error_bars(axes, rows["layer"], rows["mean"], rows["std"], number, **style)
    far = rows.dropna(subset=["trimmed"])
    colour, marker = series_style(number)["color"], series_style(number)["marker"]
    axes.vlines(far["layer"], far["mean"], far["trimmed"], colour, linestyles=":", linewidth=0.6)
    size = point_size(len(rows))
    axes.plot(far["layer"], far["trimmed"], marker, color=colour, mfc="white", markersize=size, mew=0.6)


def _legend(table: pd.DataFrame, names: list[str]) -> list[Artist]:
    from matplotlib.lines import Line2D

    handles = [legend_line(place, name, linestyle="-") for place, name in enumerate(names)]
    if table["residual"].any():
        handles.append(Line2D([], [], color=DARK, linestyle="--", label="with residual"))
    if table["trimmed"].notna().any():
        hollow: dict[str, Any] = {"marker": "o", "mfc": "white", "linestyle": ":", "linewidth": 0.6}
        handles.append(Line2D([], [], color=DARK, label="r2 trimmed", **hollow))
    return handles


@for_print
def plot_gauges(sounding: Sounding, *, columns: Columns = 2) -> Figure:
    """Plot every gauge by layer as a heat map: a panel for each kind of site, a row for each gauge.

    Each row has colours of its own, from the lowest to the highest value, which are written beside it.
    """
    table = gauge_table(sounding)
    layers = int(table["layer"].max()) + 1
    count, rows_of = table["series"].nunique(), table.groupby("gauge")["row"].nunique()
    beside = count * _TITLE + _MARGIN
    order = [gauge for gauge in sounding.gauges if gauge in rows_of]
    fitting = int((rows_of[order].cumsum() * _MIN_ROW <= MAX_HEIGHT - beside).sum())
    table = table[table["gauge"].isin(order[:fitting])]
    panels = [rows for _, rows in table.groupby("series", sort=False)]
    heights = [rows["row"].nunique() for rows in panels]
    figure = column_figure(columns, sum(heights) * _MAX_ROW + beside)
    every = figure.subplots(count, 1, sharex=True, squeeze=False, height_ratios=heights).ravel()
    for axes, rows in zip(every, panels, strict=True):
        cells = rows.pivot(index="row", columns="layer", values="share").reindex(columns=range(layers))
        named = rows.drop_duplicates("row")
        shown = axes.pcolormesh(np.arange(layers + 1) - 0.5, range(len(cells) + 1), cells, vmin=0, vmax=1)
        axes.set_facecolor(LIGHT_GREY)
        axes.invert_yaxis()
        places = [place + 0.5 for place in range(len(named))]
        axes.set_yticks(places, [axis_label(gauge) for gauge in named["gauge"]], fontsize=SMALL_SIZE)
        small: dict[str, Any] = {"va": "center", "fontsize": SMALL_SIZE}
        for place, low, high in zip(places, named["low"], named["high"], strict=True):
            axes.text(
                1.01, place, f"{number(low)} … {number(high)}", transform=axes.get_yaxis_transform(), **small
            )
        axes.tick_params("y", length=0)
        axes.spines[:].set_visible(False)
        axes.set_title(plain_text(rows["series"].iloc[0]), loc="left")
    every[-1].set_xlabel("layer")
    every[-1].locator_params("x", integer=True)
    bar = figure.colorbar(shown, ax=every, location="bottom", shrink=0.5, aspect=30, ticks=[0, 1], pad=0.02)
    bar.ax.set_xticklabels(["lowest", "highest"])
    bar.outline.set_visible(False)
    left_out = f"; the first {fitting} of {len(order)} gauges" if fitting < len(order) else ""
    bar.set_label(f"value in a row{left_out}")
    return figure
