"""The command `fathometer`: one file per verb, each a thin layer over the library."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, NoReturn

import typer

from fathometer import __version__
from fathometer.cli.activations import activations
from fathometer.cli.compare import compare
from fathometer.cli.leaky import leaky
from fathometer.cli.measure import measure
from fathometer.cli.models import models
from fathometer.cli.path import path
from fathometer.cli.plot import plot
from fathometer.cli.report import report
from fathometer.cli.show import show
from fathometer.cli.sites import sites
from fathometer.cli.survey import survey
from fathometer.errors import FathometerError, InputError, is_out_of_memory
from fathometer.progress import Terminal

app = typer.Typer(
    name="fathometer",
    help="Soundings of deep neural networks: how non-linear, how many dimensions, how fast, at every depth.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    rich_markup_mode="markdown",  # paragraphs fill the width of the terminal
    pretty_exceptions_enable=False,
)
for verb in (measure, path, show, compare, report, plot, sites, models, activations, survey):
    app.command()(verb)


app.add_typer(leaky)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fathometer {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    del version


def main() -> None:
    """Run the command `fathometer`."""
    run_app(app)


def run_app(app: typer.Typer) -> None:
    """Run a command line; an expected error is one line on stderr and exit code 2."""
    warnings.showwarning = _warn
    try:
        app()
    except FathometerError as error:
        _complain(_in_flags(error))
    except OSError as error:
        _complain(f"{error.filename or 'a file'}: {error.strerror or error}")
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        _complain("out of memory; ask for fewer samples, or smaller batches")
    except SystemExit as stop:
        if isinstance(getattr(stop.__context__, "__cause__", None), KeyboardInterrupt):
            Terminal(stderr=True).print("interrupted")  # what typer has made of it says nothing
        raise


def _in_flags(error: FathometerError) -> str:
    """The library speaks of parameters; here they are flags."""
    parameter = error.parameter if isinstance(error, InputError) else None
    if parameter is None:
        return str(error)
    return f"--{parameter.replace('_', '-')}: {error.reason}"


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Without the line of code that it came from."""
    console = Terminal(stderr=True)
    console.print(f"warning: {message}", style="yellow", soft_wrap=True)


def _complain(message: str) -> NoReturn:
    console = Terminal(stderr=True)
    console.print(f"error: {message}", style="red", soft_wrap=True)
    sys.exit(2)
