"""`fathometer leaky measure`: a table of what was trained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fathometer.cli.leaky.tables import network_view, rank_line, sweep_view
from fathometer.cli.outputs import check_writable, write_table
from fathometer.errors import InputError
from fathometer.leaky import LeakyRun, LeakySweep, load_sweep

NetworkOption = Annotated[
    int | None, typer.Option(help="One network of a sweep, by its number from 0.", min=0)
]


def measure(
    run: Annotated[Path, typer.Argument(help="A folder that `fathometer leaky train` or `sweep` wrote.")],
    network: NetworkOption = None,
    out: Annotated[Path | None, typer.Option(help="A .csv of the same, with every column.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Measure trained networks: cost of identity, energies, Hamiltonian, affinity score, bottleneck rank.

    One network is shown along its path, a sweep with a row for each design. The Hamiltonian is given as
    −2H/L̃, in units of dimensions: near the bottleneck rank where the network is critical.
    """
    if out is not None:
        if out.suffix.lower() != ".csv":
            raise InputError(f"--out {out}: expected a name that ends in .csv")
        check_writable(out, force)
    found = load_sweep(run)
    console = Console(emoji=False)
    one = only_network(found, network) if network is not None or len(found.runs) == 1 else None
    if one is not None:
        console.print(network_view(one, console))
        table = one.measures.points.merge(one.measures.layers, how="left", on="p")
    else:
        console.print(sweep_view(found, console))
        table = found.table
    if out is not None:
        write_table(table, out)
        console.print(f"wrote {out}", markup=False, highlight=False, soft_wrap=True)
    console.print(rank_line(found.runs if one is None else [one]), highlight=False)


def only_network(found: LeakySweep, number: int | None) -> LeakyRun:
    """The network of that number."""
    number = number or 0
    if number >= len(found.runs):
        raise InputError(f"--network {number}: expected a number below {len(found.runs)}, so many there are")
    return found.runs[number]
