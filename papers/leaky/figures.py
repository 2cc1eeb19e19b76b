"""Figures of statements: how far each is from its limit, and several lines along one axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fathometer.report import DARK, PALETTE, column_figure, for_print, legend_above, series_style
from papers.leaky.statements import Checked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FLOOR = 1e-10  # of the axis


@for_print
def plot_statements(checked: Iterable[Checked]) -> Figure:
    """Draw a row for each statement: its error over the tolerance, or its right side over the left one."""
    rows: dict[str, dict[str, list[float]]] = {}
    for one in checked:
        s = one.statement
        share = s.right / (s.left or _FLOOR) if np.isnan(s.error) else s.error / s.tolerance
        rows.setdefault(s.name, {}).setdefault(one.kind, []).append(min(max(share, _FLOOR), 1 / _FLOOR))
    kinds = list(dict.fromkeys(kind for of in rows.values() for kind in of))
    figure = column_figure(2, 1.2 + 0.3 * len(rows))
    axes = figure.subplots()
    for number, kind in enumerate(kinds):
        points = [(share, row) for row, of in enumerate(rows.values()) for share in of.get(kind, [])]
        across, up = np.array(points).T
        style = series_style(number)
        look = {"color": style["color"], "marker": style["marker"], "s": 9, "alpha": 0.6, "linewidths": 0}
        axes.scatter(across, up + 0.12 * (number - (len(kinds) - 1) / 2), label=kind, **look)
    axes.axvline(1, color=DARK, linewidth=0.6, linestyle="--")
    axes.set(xscale="log", xlabel="error over tolerance, or right side over left side; holds up to 1")
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    legend_above(figure, axes.collections)
    return figure


def draw_lines(
    axes: Axes,
    x: npt.ArrayLike,
    lines: Sequence[npt.ArrayLike],
    label: str,
    number: int,
    *,
    marker: bool = True,
) -> None:
    """Draw one line for each seed or draw in one colour, with one label."""
    style = series_style(number)
    for which, values in enumerate(lines):
        axes.plot(
            np.asarray(x),
            np.asarray(values),
            color=PALETTE[number],
            marker=style["marker"] if marker else None,
            linestyle="-",
            linewidth=0.8,
            alpha=max(0.35, 1 / len(lines)),
            label=label if which == 0 else None,
        )
