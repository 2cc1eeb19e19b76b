"""`fathometer leaky figures`: the paper's pictures of what was trained."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from fathometer.cli.leaky.options import RunArgument
from fathometer.cli.options import ForceOption, OutOption
from fathometer.cli.outputs import check_writable


def figures(
    run: RunArgument,
    out: OutOption = None,
    form: Annotated[
        Literal["png", "svg", "pdf"],
        typer.Option("--format", metavar="FORM", help="Format of the figures: png, svg or pdf."),
    ] = "png",
    force: ForceOption = False,
) -> None:
    """Draw Figures 1a-c, 2a-c and 3, and the affinity score along the path, as far as the networks allow.

    Figures 1a and 3 need several depths, Figure 2 several schemes of steps: see
    `fathometer leaky sweep --help`. They go into a folder (default: RUN/figures).

    For example:

    - `fathometer leaky figures leaky-sweep --format pdf`
    """
    from fathometer.leaky import load_sweep
    from fathometer.progress import Terminal
    from fathometer.report import leaky_figures, require_matplotlib, save_figure
    from fathometer.report.figures.kinds import FIGURES

    require_matplotlib()
    found = load_sweep(run)
    folder = out or run / "figures"
    for name in FIGURES:
        check_writable(folder / f"{name}.{form}", force)
    drawn, missing = leaky_figures(found)
    console = Terminal()
    for name, figure in drawn.items():
        path = folder / f"{name}.{form}"
        save_figure(figure, path)
        console.say(f"wrote {path}")
    for name, reason in missing.items():
        console.say(f"no {name}: {reason}")
