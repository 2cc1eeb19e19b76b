"""The commands of `fathometer` by name; the module of each is imported when it is needed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fathometer import __version__
from fathometer.cli import FLAGS, SETTINGS

COMMANDS = (
    *("measure", "path", "show", "compare", "report", "plot"),
    *("sites", "models", "activations", "survey", "leaky"),
)


class LazyGroup(TyperGroup):
    """A group whose commands are the `app`s of the modules of the same name."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.params = [*self.params, *typer.main.get_command(_shared).params]
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]  # names, for suggestions

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Import a command and give it the options that all commands share."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"fathometer.cli.{cmd_name}")
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        FLAGS.clear()
        _prepare(command)
        return command


def _prepare(command: Any) -> None:
    for inner in getattr(command, "commands", {}).values():
        _prepare(inner)
    if not hasattr(command, "commands"):
        for parameter in command.params:
            if parameter.param_type_name == "option":
                FLAGS[parameter.name] = max(parameter.opts, key=len)
        command.params += typer.main.get_command(_shared).params


def _verbose(value: bool) -> None:
    if value:
        SETTINGS.verbose = True
        logging.basicConfig(format="%(message)s")
        logging.getLogger("fathometer").setLevel(logging.INFO)


def _debug(value: bool) -> None:
    SETTINGS.debug |= value


def _flag(name: str, callback: Callable[[bool], None], words: str) -> Any:
    return typer.Option(name, metavar="", expose_value=False, callback=callback, help=words)


_shared = typer.Typer(add_completion=False)
_VERBOSE = "Say what is being done, and where warnings come from."


@_shared.command()
def _shared_options(
    verbose: Annotated[bool, _flag("--verbose", _verbose, _VERBOSE)] = False,
    debug: Annotated[bool, _flag("--debug", _debug, "Show the traceback of an error.")] = False,
) -> None:
    """Hold the options that every command has."""
    del verbose, debug


app = typer.Typer(
    name="fathometer",
    cls=LazyGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",  # paragraphs fill the width of the terminal
    pretty_exceptions_enable=False,
)


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
    """Measure deep neural networks: how non-linear, how many dimensions, how fast, at every depth.

    `fathometer COMMAND --help` explains a command, with examples. Most begin with `measure`.
    """
    del version
