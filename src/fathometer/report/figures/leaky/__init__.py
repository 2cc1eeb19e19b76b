"""The figures of the leaky lab, drawn from sweeps: those of the paper, and `affinity`, which is ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from fathometer.errors import FathometerError
from fathometer.leaky import LeakySweep
from fathometer.report.figures.leaky.depths import depth_table, plot_bounded, plot_dimensions
from fathometer.report.figures.leaky.paths import plot_affinity, plot_energies, plot_spectra, usual_run
from fathometer.report.figures.leaky.schemes import plot_errors, plot_plane, plot_steps
from fathometer.report.figures.style import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "FIGURES",
    "LeakyFigure",
    "LeakyFigures",
    "depth_table",
    "leaky_figures",
    "plot_affinity",
    "plot_bounded",
    "plot_dimensions",
    "plot_energies",
    "plot_errors",
    "plot_plane",
    "plot_spectra",
    "plot_steps",
    "usual_run",
]


class LeakyFigure(NamedTuple):
    """How to draw a figure.

    Attributes:
        draw: gives it from a sweep, or raises an InputError that says what the sweep lacks.
        shows: what is in it.
        needs: which networks the sweep must hold.
    """

    draw: Callable[[LeakySweep], Figure]
    shows: str
    needs: str


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
    "1a": LeakyFigure(plot_dimensions, "Hamiltonians, COI and stable rank against L̃", _DEPTHS),
    "1b": LeakyFigure(plot_spectra, "spectra of A_p and W_p along p", _ONE),
    "1c": LeakyFigure(plot_energies, "energies and Hamiltonians along p", f"{_ONE}, L̃ > 0"),
    "2a": LeakyFigure(plot_errors, "test error against L for each scheme", f"{_SCHEMES}; test samples"),
    "2b": LeakyFigure(plot_steps, "spectra of W_p with adaptive steps", "a network with adaptive steps"),
    "2c": LeakyFigure(plot_plane, "paths of the schemes in a plane", "two schemes with the same L and seed"),
    "3": LeakyFigure(plot_bounded, "path lengths and momenta against L̃", _DEPTHS),
    "affinity": LeakyFigure(plot_affinity, "affinity of σ, ‖A₋‖/‖A‖ and COI along p", _ONE),
}
"""By the paper's numbers, and `affinity`."""


def leaky_figures(sweep: LeakySweep) -> LeakyFigures:
    """All figures that this sweep can show, and for the others why not."""
    require_matplotlib()
    figures: dict[str, Figure] = {}
    reasons: dict[str, str] = {}
    for name, figure in FIGURES.items():
        try:
            figures[name] = figure.draw(sweep)
        except FathometerError as error:
            reasons[name] = str(error)
    return LeakyFigures(figures, reasons)
