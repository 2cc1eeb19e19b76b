"""`fathometer show`: a sounding as a table, a picture or a CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from fathometer.cli.options import ForceOption, PictureOption
from fathometer.cli.outputs import planned_outputs, write_table
from fathometer.cli.tables import sounding_view
from fathometer.report.figures.style import save_figure
from fathometer.sounding_file import load


def show(
    file: Annotated[
        Path, typer.Argument(help="A sounding: a .json or .parquet file of `fathometer measure`.")
    ],
    gauge: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The gauge to show. Default: the first that was measured."),
    ] = None,
    out: PictureOption = None,
    force: ForceOption = False,
) -> None:
    """Show a sounding: its sites with a bar for each, and how it came about.

    For instance:

    - `fathometer show resnet18-photos.json`

    - `fathometer show resnet18-photos.json --gauge stable_rank_x --out ranks.png`
    """
    sounding = load(file)
    gauge = gauge or sounding.gauges[0]
    sounding.mean(gauge)  # is it there?
    picture, table = planned_outputs(out, force)
    console = Console(emoji=False)
    console.print(sounding_view(sounding, gauge, console))
    facts = sounding.provenance
    settings = facts.settings
    lines = [
        f"{facts.model.get('class', '?')}, {facts.model.get('parameters', 0):,} parameters, "
        f"sha256 {str(facts.model.get('sha256', '?'))[:12]}…",
        f"{facts.data.get('samples_measured', '?')} samples in batches of {settings.get('samples', '?')}, "
        f"reduced by {settings.get('reduction', {}).get('pooling', '?')}, seed {settings.get('seed', '?')}",
        f"{facts.device}, {facts.date}, {facts.seconds:.1f} s, "
        + ", ".join(f"{name} {version}" for name, version in list(facts.versions.items())[:3]),
        f"gauges: {', '.join(sounding.gauges)}",
    ]
    for line in lines:
        console.print(Text(line, style="dim"))
    if table:
        write_table(sounding.records, table)
    if picture:
        save_figure(sounding.plot(gauge), picture)
    for path in filter(None, (picture, table)):
        console.print(f"wrote {path}", highlight=False, markup=False, soft_wrap=True)
