"""The figures of the leaky lab, drawn from sweeps: those of the paper, and `affinity`, which is ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from fathometer.errors import FathometerError, InputError
from fathometer.leaky import LeakyRun, LeakySweep
from fathometer.report.figures.leaky.course import plot_ranks, plot_training
from fathometer.report.figures.leaky.depths import plot_bounded, plot_dimensions
from fathometer.report.figures.leaky.paths import plot_affinity, plot_energies, plot_spectra
from fathometer.report.figures.leaky.plane import plot_projection
from fathometer.report.figures.leaky.schemes import plot_errors, plot_plane, plot_steps
from fathometer.report.figures.style import Columns, require_matplotlib
from fathometer.report.leaky_tables import depth_table, usual_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "FIGURES",
    "PICTURES",
    "LeakyFigure",
    "LeakyFigures",
    "depth_table",
    "draw_leaky",
    "leaky_figures",
    "plot_affinity",
    "plot_bounded",
    "plot_dimensions",
    "plot_energies",
    "plot_errors",
    "plot_plane",
    "plot_projection",
    "plot_ranks",
    "plot_spectra",
    "plot_steps",
    "plot_training",
    "usual_picture",
    "usual_run",
]


class LeakyFigure(NamedTuple):
    """How to draw a figure.

    Attributes:
        draw: gives it from a sweep and `columns`, or raises an InputError that says what the sweep lacks.
        needs: which networks the sweep must hold.
        alone: whether a run can show it that is no sweep.
    """

    draw: Callable[..., Figure]
    needs: str
    alone: bool = False


class LeakyFigures(NamedTuple):
    """What a sweep can show.

    Attributes:
        figures: by name.
        reasons: for each of the others, why not.
    """

    figures: dict[str, Figure]
    reasons: dict[str, str]


_DEPTHS = "two or more L̃ > 0, all else but seeds the same"
_ONE = "any network; that with L̃ nearest 7 and the least seed is shown"
_SCHEMES = "equidistant and other steps with the same L and seeds"

FIGURES = {
    "1a": LeakyFigure(plot_dimensions, _DEPTHS),
    "1b": LeakyFigure(plot_spectra, _ONE, alone=True),
    "1c": LeakyFigure(plot_energies, f"{_ONE}, L̃ > 0", alone=True),
    "2a": LeakyFigure(plot_errors, f"{_SCHEMES}; test samples"),
    "2b": LeakyFigure(plot_steps, "a network with adaptive steps"),
    "2c": LeakyFigure(plot_plane, "two schemes with the same L and seed"),
    "3": LeakyFigure(plot_bounded, _DEPTHS),
    "affinity": LeakyFigure(plot_affinity, _ONE, alone=True),
}
"""By the paper's numbers, and `affinity`."""

PICTURES = FIGURES | {
    "ranks": LeakyFigure(plot_ranks, _ONE, alone=True),
    "training": LeakyFigure(plot_training, "any network", alone=True),
    "projection": LeakyFigure(plot_projection, _ONE, alone=True),
}
"""These, and others that the paper has not."""


def draw_leaky(results: LeakySweep | LeakyRun, kind: str, *, columns: Columns = 2) -> Figure:
    """One of `PICTURES`, by name, of a sweep or a run; an InputError says what the sweep lacks."""
    if kind not in PICTURES:
        raise InputError(f"expected one of {', '.join(PICTURES)}, got {kind!r}")
    picture = PICTURES[kind]
    if isinstance(results, LeakyRun) and not picture.alone:
        alone = ", ".join(name for name, other in PICTURES.items() if other.alone)
        raise InputError(f"{kind} needs a sweep ({picture.needs}), got one run, which can show {alone}")
    return picture.draw(results, columns=columns)


def usual_picture(sweep: LeakySweep) -> str:
    """What one would look at first: 1a of several depths, 2a of several schemes, else the energies."""
    depths = {run.design.effective_depth for run in sweep.runs}
    if len(depths - {0.0}) > 1:
        return "1a"
    if len({run.design.scheme for run in sweep.runs}) > 1:
        return "2a"
    return "1c" if max(depths) > 0 else "1b"


def leaky_figures(sweep: LeakySweep, *, columns: Columns = 2) -> LeakyFigures:
    """All figures of the paper that this sweep can show, and for the others why not."""
    require_matplotlib()
    figures: dict[str, Figure] = {}
    reasons: dict[str, str] = {}
    for name, figure in FIGURES.items():
        try:
            figures[name] = figure.draw(sweep, columns=columns)
        except FathometerError as error:
            reasons[name] = str(error)
    return LeakyFigures(figures, reasons)
