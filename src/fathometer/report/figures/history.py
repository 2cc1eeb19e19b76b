"""A training as a picture: a gauge by site and step, and the first and last signature beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fathometer.history import History
from fathometer.report.figures.style import BUOY, INK, SEA, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW = 40  # so many names still fit beside the axis


def plot_history(history: History, gauge: str = "affinity") -> Figure:
    """Left the gauge over time, a row for each site, the first on top; right the first and the last sounding.

    A column of the map reaches half-way to the steps measured before and after it.
    """
    table = history.table(gauge)
    names = [str(name) for name in table.columns]
    figure = new_figure(9.0, max(2.8, min(11.0, 1.4 + 0.2 * len(names))))
    heat, lines = figure.subplots(1, 2, sharey=True, width_ratios=(2, 1))
    depth = np.arange(len(names))
    drawn = heat.pcolormesh(
        _edges(np.array(history.steps, float)),
        _edges(depth.astype(float)),
        table.to_numpy().T,
        cmap="viridis",
        vmax=1.0 if gauge.startswith("affinity") else None,
    )
    figure.colorbar(drawn, ax=heat, label=gauge.replace("_", " "), pad=0.01)
    heat.set_xlabel("step")
    if len(history.steps) > 1:
        heat.set_xlim(history.steps[0], history.steps[-1])
    _name_sites(heat, names)
    for row, colour, style in ((0, SEA, "--"), (-1, BUOY, "-")):
        label = f"step {history.steps[row]}"
        lines.plot(
            table.iloc[row], depth, color=colour, linestyle=style, marker="o", markersize=3.5, label=label
        )
    lines.set_xlabel(gauge.replace("_", " "))
    lines.spines[["top", "right"]].set_visible(False)
    lines.legend(fontsize=8, frameon=False)
    model = str(history.soundings[0].provenance.model.get("name", ""))
    figure.suptitle(model.replace("$", r"\$"), fontsize=10, color=INK)
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
    axes.set_yticks(range(len(names)), [name.replace("$", r"\$") for name in names], fontsize=7)
