"""`fathometer leaky theory`: the paper's statements, measured on what was trained."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from fathometer.cli.leaky.options import RunArgument
from fathometer.cli.options import ForceOption, GammaOption, JsonOption, NetworkOption, OutOption
from fathometer.cli.outputs import check_writable, print_json, write_table

if TYPE_CHECKING:
    from rich.table import Table

    from fathometer.leaky.theory import Statement


def theory(
    run: RunArgument,
    network: NetworkOption = None,
    gamma: GammaOption = 1e-3,
    details: Annotated[
        bool, typer.Option("--details", metavar="", help="Show how each statement was decided.")
    ] = False,
    out: OutOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Check every statement of the paper on a trained network: both sides measured, and the slack.

    Of a sweep, the deepest network that did not diverge is used; Proposition 5 is about all depths with its
    other settings. `--out` writes a .csv.

    For example:

    - `fathometer leaky theory leaky-7-3-0 --details`
    """
    import pandas as pd

    from fathometer.cli.leaky.measure import only_network
    from fathometer.leaky import load_sweep
    from fathometer.leaky.theory import check_all
    from fathometer.progress import Terminal

    found = load_sweep(run)
    chosen = (
        max(found.trained, key=lambda run: run.design.effective_depth)
        if network is None
        else only_network(found, network)
    )
    if out is not None:
        check_writable(out, force, (".csv",))
    others = [other.path for other in found.siblings(chosen)]
    statements = check_all(chosen.path, gamma, others if len(others) > 1 else ())
    console = Terminal(stderr=as_json)
    table = pd.DataFrame([asdict(statement) for statement in statements]).drop(columns="details")
    design = chosen.design
    console.print(
        f"L̃ = {design.effective_depth:g}, L = {design.layers}, width {design.width}, seed {design.seed}"
        + ("" if chosen.diverged is None else f"; diverged at epoch {chosen.diverged}, last finite weights")
    )
    if as_json:
        print_json(table)
    else:
        console.print(_view(statements, details))
    if out is not None:
        write_table(table, out)
        console.say(f"wrote {out}")
    held = sum(statement.holds for statement in statements)
    console.print(f"{held} of {len(statements)} statements hold")


def _view(statements: list[Statement], details: bool) -> Table:
    from rich.table import Table
    from rich.text import Text

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
