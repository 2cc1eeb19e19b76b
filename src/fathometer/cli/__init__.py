"""The command `fathometer`: one file per verb, each a thin layer over the library."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from fathometer import __version__
from fathometer.cli.activations import activations
from fathometer.errors import FathometerError

app = typer.Typer(
    name="fathometer",
    help="Soundings of deep neural networks: how non-linear, how many dimensions, how fast, at every depth.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(activations)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fathometer {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    del version


def main() -> None:
    """Run the command; what goes wrong on purpose is one line and exit code 2."""
    try:
        app()
    except FathometerError as error:
        Console(stderr=True).print(f"error: {error}", style="red", markup=False, highlight=False)
        sys.exit(2)
