"""The residual path along depth: stable rank, cost of identity and speed, one above the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fathometer.errors import InputError
from fathometer.report.figures.style import (
    MARGIN,
    SMALL_SIZE,
    UPRIGHT,
    WIDTHS,
    Columns,
    column_figure,
    for_print,
    legend_above,
    letters_in,
    look,
    plain,
)
from fathometer.results.sounding import Sounding

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANELS = {"stable_rank": "stable rank", "cost_of_identity": "cost of identity", "speed": "speed"}


@for_print
def plot_path(
    paths: Sequence[Sounding], labels: Sequence[str] | None = None, *, columns: Columns = 2
) -> Figure:
    """Three panels along the blocks, with one standard deviation over batches as error bar.

    The stable rank begins with the input of the first block; a ring marks where it is least. Several paths
    are laid over each other, by name where they have the same blocks, else by relative depth.

    Args:
        paths: what `residual_path` gives.
        labels: of the lines; the names of the networks if left out.
        columns: 1 or 2, the width in columns of a page.
    """
    from matplotlib.lines import Line2D

    if not paths:
        raise InputError("expected at least one path to plot, got none")
    for path in paths:
        if not is_path(path):
            raise InputError(f"expected what residual_path gives, got a sounding of {', '.join(path.gauges)}")
    labels = labels or [str(path.provenance.model.get("name", "")) for path in paths]
    panels = [gauge for gauge in _PANELS if any(gauge in path.gauges for path in paths)]
    names = [[site.name for site in path.sites] for path in paths]
    alike = all(other == names[0] for other in names)
    figure = column_figure(columns, (1.15 if columns == 1 else 1.5) * len(panels) + 0.7)
    every = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for number, path in enumerate(paths):
        for axes, gauge in zip(every, panels, strict=True):
            if gauge in path.gauges:
                _line(axes, path, gauge, number, relative=not alike)
    for axes, gauge in zip(every, panels, strict=True):
        axes.set_ylabel(_PANELS[gauge])
        axes.set_ylim(0, 1.06 * axes.get_ylim()[1])  # room for the highest marker
    _name_blocks(every[-1], names[0] if alike else [], WIDTHS[columns])
    if len(paths) == 1:
        every[0].set_title(plain(labels[0], letters_in(WIDTHS[columns] - 0.7, 8)), loc="left")
    else:
        handles = [Line2D([], [], label=plain(label, 40), **look(i)) for i, label in enumerate(labels)]
        legend_above(figure, handles)
    return figure


def is_path(sounding: Sounding) -> bool:
    """Whether it is what `residual_path` gives."""
    return {"stable_rank", "stable_rank_in", "speed"} <= set(sounding.gauges)


def _line(axes: Axes, path: Sounding, gauge: str, number: int, *, relative: bool) -> None:
    mean, std = path.mean(gauge).to_numpy(), path.std(gauge).fillna(0).to_numpy()
    depth = np.arange(1, len(mean) + 1, dtype=float)  # 0 is the input of the first block
    if gauge == "stable_rank":
        start = path.sites[0].name
        mean = np.r_[path.mean("stable_rank_in")[start], mean]
        std = np.r_[path.std("stable_rank_in").fillna(0)[start], std]
        depth = np.r_[0, depth]
    if relative:
        depth /= len(path.sites)
    axes.errorbar(depth, mean, yerr=std, elinewidth=0.6, **look(number))
    if gauge == "stable_rank":
        least = 1 + int(np.argmin(mean[1:]))
        colour = look(number)["color"]
        axes.plot(depth[least], mean[least], "o", markersize=8, fillstyle="none", color=colour)


def _name_blocks(axes: Axes, names: Sequence[str], width: float) -> None:
    if not names:
        axes.set_xlabel("relative depth")
    elif (width - MARGIN) / (len(names) + 1) < UPRIGHT:
        axes.set_xlabel("block")
    else:
        shown = ["input", *(plain(name, 30) for name in names)]
        axes.set_xticks(range(len(shown)), shown, rotation=90, fontsize=SMALL_SIZE)
