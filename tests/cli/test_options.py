"""An option has the same name, help and kind of value in every command, and help needs no heavy library."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from fathometer.cli.app import COMMANDS, app

GROUP: Any = typer.main.get_command(app)


def commands(group: Any = GROUP, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its path."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ALL = dict(commands())
OPTIONS = [
    (parameter.opts[0], parameter)
    for command in ALL.values()
    for parameter in command.params
    if parameter.param_type_name == "option"
]


OTHERS = {"--preset", "--steps"}  # words of each command; steps of a training, or of an integration scheme


@pytest.mark.parametrize("name", sorted({name for name, _ in OPTIONS} - OTHERS))
def test_an_option_means_the_same_in_every_command(name: str) -> None:
    found = [parameter for option, parameter in OPTIONS if option == name]
    assert len({tuple(parameter.opts) for parameter in found}) == 1
    assert len({parameter.help for parameter in found}) == 1
    assert len({parameter.metavar for parameter in found}) == 1


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_has_a_summary_and_examples_that_parse(path: tuple[str, ...]) -> None:
    command = ALL[path]
    assert command.help.split("\n")[0].endswith(".")
    start = f"fathometer {' '.join(path)} "
    examples = [
        text for text in re.findall(r"^- .*?`([^`]+)`", command.help, re.MULTILINE) if text.startswith(start)
    ]
    assert examples
    for example in examples:
        if "--help" not in example:
            command.make_context(path[-1], shlex.split(example.removeprefix(start)))


def test_no_help_imports_a_heavy_library() -> None:
    """All commands in one process; the first import of a heavy library is named."""
    program = """
import sys
from typer.testing import CliRunner
from fathometer.cli.app import app
for path in sys.argv[1:]:
    result = CliRunner().invoke(app, [*path.split(), "--help"])
    assert result.exit_code == 0, result.output
    heavy = {"torch", "scipy", "pandas", "numpy", "matplotlib", "sklearn"} & set(sys.modules)
    assert not heavy, f"{path}: {heavy}"
"""
    paths = ["", *COMMANDS, *map(" ".join, ALL)]
    done = subprocess.run([sys.executable, "-c", program, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
