"""Paths in a plane: the first two principal components of A_p."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fathometer.leaky.schemes import Projection, project_paths
from fathometer.report.figures.leaky.paths import name_run
from fathometer.report.figures.style import (
    DARK,
    GREY,
    NOTE_SIZE,
    SCALE,
    WIDTHS,
    Columns,
    column_figure,
    for_print,
)
from fathometer.report.leaky_tables import Results, usual_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@for_print
def plot_projection(results: Results, *, columns: Columns = 2) -> Figure:
    """The path A_p of one network in the plane of its own PCA, a dot at each layer, coloured by p.

    Args:
        results: a run, or a sweep of which `usual_run` is shown.
        columns: 1 or 2, the width in columns of a page.
    """
    run = usual_run(results)
    plane = project_paths([run])
    figure, axes = plane_figure(plane, columns)
    (path,) = plane.paths
    axes.plot(*path.T, color=GREY, linewidth=0.8, zorder=1)
    dots = axes.scatter(path[:, 0], path[:, 1], s=14, c=run.path.places.numpy(), cmap=SCALE, zorder=2)
    bar = figure.colorbar(dots, ax=axes, label="$p$", aspect=25, pad=0.01)
    bar.outline.set_visible(False)
    name_run(figure, run)
    return figure


def plane_figure(plane: Projection, columns: Columns) -> tuple[Figure, Axes]:
    """A figure with one unit for both components, as high as the paths ask for, and their ends marked."""
    breadth, height = np.ptp(np.concatenate(plane.paths), axis=0)
    share = float(np.clip(height / (breadth or 1.0), 0.42, 0.8))
    figure = column_figure(columns, 0.8 + 0.85 * WIDTHS[columns] * share)
    axes = figure.subplots()
    for label, place in (("$p=0$", 0), ("$p=1$", -1)):
        x, y = np.mean([path[place] for path in plane.paths], axis=0)
        axes.annotate(
            label, (x, y), xytext=(6, 6), textcoords="offset points", fontsize=NOTE_SIZE, color=DARK
        )
    axes.margins(0.08, 0.14)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel(f"first principal component ({plane.explained[0]:.0%})")
    axes.set_ylabel(f"second ({plane.explained[1]:.0%})")
    return figure, axes
