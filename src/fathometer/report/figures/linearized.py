"""What a network loses as its activations become lines, and what each of them costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fathometer.report.figures.style import BLUE, GREY, ORANGE, Columns, column_figure, for_print
from fathometer.report.tables import curve_table, site_cost_table
from fathometer.results.linearized import Linearized

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEIGHT = 2.4
_MAX_NAMES = 20  # of sites below an axis


@for_print
def plot_linearized(result: Linearized, *, columns: Columns = 2) -> Figure:
    """Plot the curve of a linearized network, and the cost of each site in order of depth."""
    from matplotlib.ticker import MaxNLocator

    figure = column_figure(columns, _HEIGHT if columns == 2 else 2 * _HEIGHT)
    left, right = figure.subplots(*((1, 2) if columns == 2 else (2, 1)))
    curve, sites = curve_table(result), site_cost_table(result)
    left.plot(curve["replaced"], curve["value"], "o-", color=BLUE, markersize=3)
    left.set_xlabel(f"sites replaced, of {len(result.sites)}")
    left.set_ylabel(curve["measure"].iloc[0])
    for is_replaced, colour, name in ((False, GREY, "kept"), (True, ORANGE, "replaced")):
        part = sites[sites["replaced"] == is_replaced]
        if len(part):
            right.plot(part["order"], part["cost"], "o", color=colour, label=name, markersize=3)
    if (sites["cost"] >= 0).all() and (above := sites["cost"][sites["cost"] > 0]).any():
        right.set_yscale("symlog", linthresh=above.min())
    right.set_xlabel("site, in order of depth")
    right.set_ylabel(sites["measure"].iloc[0])
    for axes in (left, right):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(sites) <= _MAX_NAMES:
        right.set_xticks(sites["order"], sites["site"], rotation=30, ha="right")
    right.legend(frameon=False)
    return figure
