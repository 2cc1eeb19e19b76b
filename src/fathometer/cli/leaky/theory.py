"""`fathometer leaky theory`: the paper's statements, measured on what was trained."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import pandas as pd
import typer
from rich.table import Table
from rich.text import Text

from fathometer.cli.leaky.measure import only_network
from fathometer.cli.leaky.options import NetworkOption, RunArgument
from fathometer.cli.options import ForceOption, GammaOption, TableOption
from fathometer.cli.outputs import check_table, write_table
from fathometer.leaky import load_sweep
from fathometer.leaky.theory import Statement, check_all
from fathometer.progress import Terminal


def theory(
    run: RunArgument,
    network: NetworkOption = None,
    gamma: GammaOption = 1e-3,
    details: Annotated[
        bool, typer.Option("--details", metavar="", help="Say how each was decided, and what is off.")
    ] = False,
    out: TableOption = None,
    force: ForceOption = False,
) -> None:
    """Check every statement of the paper on a trained network: both sides measured, and the slack.

    Of a sweep the deepest network that did not diverge is taken; Proposition 5 is about all depths with its
    other settings.
    """
    found = load_sweep(run)
    chosen = (
        max(found.trained, key=lambda run: run.design.effective_depth)
        if network is None
        else only_network(found, network)
    )
    check_table(out, force)
    others = [other.path for other in found.siblings(chosen)]
    statements = check_all(chosen.path, gamma, others if len(others) > 1 else ())
    console = Terminal()
    design = chosen.design
    console.print(
        f"L̃ = {design.effective_depth:g}, L = {design.layers}, width {design.width}, seed {design.seed}"
        + ("" if chosen.diverged is None else f"; diverged at epoch {chosen.diverged}, last finite weights")
    )
    console.print(_view(statements, details))
    if out is not None:
        write_table(
            pd.DataFrame([asdict(statement) for statement in statements]).drop(columns="details"), out
        )
        console.print(f"wrote {out}", soft_wrap=True)
    held = sum(statement.holds for statement in statements)
    console.print(f"{held} of {len(statements)} statements hold")


def _view(statements: list[Statement], details: bool) -> Table:
    view = Table("", "statement", show_lines=details)
    for name in ("left", "right", "slack"):
        view.add_column(name, justify="right")
    for statement in statements:
        text = Text(statement.name, style="bold")
        text.append(f"\n{statement.claim}", style="not bold")
        if details:
            text.append(f"\n{statement.how}. {statement.note}", style="dim not bold")
        mark = Text("yes", "green") if statement.holds else Text("no", "red")
        view.add_row(mark, text, *(f"{n:.4g}" for n in (statement.left, statement.right, statement.slack)))
    return view
