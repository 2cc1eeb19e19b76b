"""`fathometer show`: a sounding as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from fathometer.cli.options import ForceOption, TableOption
from fathometer.cli.outputs import check_table, write_table
from fathometer.cli.tables import sounding_view
from fathometer.progress import Terminal
from fathometer.results.sounding_file import load


def show(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A sounding: a .json or .parquet file of `fathometer measure`."),
    ],
    gauge: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The gauge to show. Default: the first that was measured."),
    ] = None,
    out: TableOption = None,
    force: ForceOption = False,
) -> None:
    """Show a sounding: its sites with a bar for each, and how it came about.

    For instance:

    - `fathometer show resnet18-photos.json`

    - `fathometer show resnet18-photos.json --gauge stable_rank_x --out ranks.csv`
    """
    sounding = load(file)
    gauge = gauge or sounding.gauges[0]
    sounding.mean(gauge)  # is it there?
    check_table(out, force)
    console = Terminal()
    console.print(sounding_view(sounding, gauge, console))
    facts = sounding.provenance
    settings = facts.settings
    pooling = _pooling(settings.get("reduction"))
    inputs, unit = ("texts", " tokens") if pooling == "tokens" else ("samples", "")
    lines = [
        f"{facts.model.get('class', '?')}, {_count(facts.model.get('parameters', 0))} parameters, "
        f"sha256 {str(facts.model.get('sha256', '?'))[:12]}…",
        f"{facts.data.get('samples_measured', '?')} {inputs} in batches of "
        f"{settings.get('samples', '?')}{unit}, reduced by {pooling}, seed {settings.get('seed', '?')}",
        f"{facts.device}, {facts.date}, {facts.seconds:.1f} s, "
        + ", ".join(f"{name} {version}" for name, version in list(facts.versions.items())[:3]),
        f"gauges: {', '.join(sounding.gauges)}",
    ]
    for line in lines:
        console.print(Text(line, style="dim"))
    if out:
        write_table(sounding.records, out)
        console.print(f"wrote {out}", soft_wrap=True)


def _count(number: object) -> str:
    """With commas; a file may hold anything."""
    return f"{number:,}" if isinstance(number, int) else str(number)


def _pooling(reduction: object) -> str:
    return str(reduction.get("pooling", "?") if isinstance(reduction, dict) else "?")
