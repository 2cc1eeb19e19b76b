"""`fathometer leaky figures`: the paper's pictures of what was trained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from fathometer.cli.outputs import check_writable
from fathometer.leaky import load_sweep
from fathometer.report.figures import require_matplotlib, save_figure


def figures(
    run: Annotated[Path, typer.Argument(help="A folder that `fathometer leaky train` or `sweep` wrote.")],
    out: Annotated[Path | None, typer.Option(help="The folder to write. Default: RUN/figures.")] = None,
    form: Annotated[Literal["png", "svg", "pdf"], typer.Option("--format", help="Of the pictures.")] = "png",
    force: Annotated[bool, typer.Option("--force", help="Replace existing pictures.")] = False,
) -> None:
    """Draw Figures 1a-c, 2a-c and 3, and the affinity score along the path, as far as the networks allow.

    Figures 1a and 3 need several depths, Figure 2 several schemes of steps: see
    `fathometer leaky sweep --help`.
    """
    from fathometer.report.leaky import FIGURES, leaky_figures

    require_matplotlib()
    folder = out or run / "figures"
    for name in FIGURES:
        check_writable(folder / f"{name}.{form}", force)
    drawn, missing = leaky_figures(load_sweep(run))
    console = Console(emoji=False)
    for name, figure in drawn.items():
        path = folder / f"{name}.{form}"
        save_figure(figure, path)
        console.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
    for name, reason in missing.items():
        console.print(f"no {name}: {reason}", markup=False, highlight=False, soft_wrap=True)
