"""A training as a picture: a gauge by site and step, and the first and last signature beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fathometer.report.figures.style import (
    BLUE,
    RED,
    SMALL_SIZE,
    Columns,
    column_figure,
    for_print,
    plain,
    words,
)
from fathometer.results.history import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW = 40  # so many names still fit beside the axis
_LETTERS = 30  # of a name


@for_print
def plot_history(history: History, gauge: str = "affinity", *, columns: Columns = 2) -> Figure:
    """Left the gauge over time, a row for each site, the first on top; right the first and the last sounding.

    A column of the map reaches half-way to the steps measured before and after it. In one column of a page
    the second is below the first.
    """
    table = history.table(gauge)
    names = [str(name) for name in table.columns]
    height = max(2.4, 1.2 + 0.16 * min(len(names), _FEW))
    if columns == 1:
        figure = column_figure(columns, 2 * height)
        heat, lines = figure.subplots(2, 1, sharey=True)
    else:
        figure = column_figure(columns, height)
        heat, lines = figure.subplots(1, 2, sharey=True, width_ratios=(2, 1))
    depth = np.arange(len(names))
    drawn = heat.pcolormesh(
        _edges(np.array(history.steps, float)),
        _edges(depth.astype(float)),
        table.to_numpy().T,
        vmax=1.0 if gauge.startswith("affinity") else None,
    )
    figure.colorbar(drawn, ax=heat, label=words(gauge), pad=0.01)
    heat.set_xlabel("step")
    if len(history.steps) > 1:
        heat.set_xlim(history.steps[0], history.steps[-1])
    _name_sites(heat, names)
    for row, colour, style in ((0, BLUE, "--"), (-1, RED, "-")):
        label = f"step {history.steps[row]}"
        lines.plot(table.iloc[row], depth, color=colour, linestyle=style, marker="o", label=label)
    lines.set_xlabel(words(gauge))
    lines.legend()
    figure.suptitle(plain(history.soundings[0].provenance.model.get("name", "")))
    return figure


def _edges(centres: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """The borders half-way between the centres, and as far out at both ends."""
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    middles = (centres[1:] + centres[:-1]) / 2
    return np.r_[2 * centres[0] - middles[0], middles, 2 * centres[-1] - middles[-1]]


def _name_sites(axes: Axes, names: list[str]) -> None:
    axes.invert_yaxis()
    if len(names) > _FEW:
        axes.set_ylabel("site, in order of depth")
        return
    axes.set_yticks(range(len(names)), [plain(name, _LETTERS) for name in names], fontsize=SMALL_SIZE)
