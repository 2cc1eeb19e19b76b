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
from fathometer.cli.options import new_app

COMMANDS = (
    *("measure", "check", "path", "show", "compare", "report", "plot"),
    *("sites", "linearize", "models", "activations", "film", "survey", "leaky"),
)


_LAB_NAMES = {
    "gamma": "gamma0",
    "depth": "effective_depth",
    "depths": "effective_depth",
    "ranks": "rank",
    "schemes": "scheme",
}
"""What the leaky lab calls options of the command line."""


class LazyGroup(TyperGroup):
    """A group whose commands are the `app`s of the modules of the same name."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.params = [*self.params, *_shared_options()]
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]  # names, for suggestions

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Import a command and give it the options that all commands share."""
        if cmd_name not in COMMANDS:
            return None
        command = typer.main.get_command(import_module(f"fathometer.cli.{cmd_name}").app)
        command.name = cmd_name
        for each in getattr(command, "commands", {"": command}).values():
            each.callback = _with_flags(each)
            each.params += _shared_options()
        return command


def _with_flags(command: Any) -> Callable[..., Any]:
    """Return what the command calls, so that messages name the flags of this command."""
    call = command.callback
    flags = {p.name: max(p.opts, key=len) for p in command.params if p.param_type_name == "option"}
    for option, name in _LAB_NAMES.items():
        if option in flags:
            flags[name] = flags[option]

    def run(**arguments: Any) -> Any:
        FLAGS.clear()
        FLAGS.update(flags)
        return call(**arguments)

    return run


def _set(option: typer.CallbackParam, value: bool) -> None:
    if not value:  # it may have been given before the command
        return
    setattr(SETTINGS, str(option.name), True)
    if SETTINGS.verbose:
        logging.basicConfig(format="%(message)s")
        logging.getLogger("fathometer").setLevel(logging.INFO)


def _flag(name: str, help_text: str) -> Any:
    return typer.Option(name, metavar="", expose_value=False, callback=_set, help=help_text)


_shared = new_app()


@_shared.command()
def _options(
    verbose: Annotated[
        bool, _flag("--verbose", "Say what is being done, and where warnings come from.")
    ] = False,
    debug: Annotated[bool, _flag("--debug", "Show the traceback of an error.")] = False,
) -> None:
    """Hold the options that every command has, so that they can stand anywhere in the line."""
    del verbose, debug


def _shared_options() -> list[Any]:
    return list(typer.main.get_command(_shared).params)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fathometer {__version__}")
        raise typer.Exit


app = new_app(name="fathometer", cls=LazyGroup, no_args_is_help=True, add_completion=True)


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
