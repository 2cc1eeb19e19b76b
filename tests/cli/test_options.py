"""The same option has the same name, the same words and the same kind of value in every verb."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from fathometer.cli import app

DIFFERENT = {  # one word, more than one thing
    "--out": "what is written differs; the name and -o do not",
    "--data": "of a leaky run: a task, x and y",
    "--samples": "of a measured batch, of a score, of a task",
    "--seed": "what is random differs",
    "--gauge": "the default differs",
    "--metric": "the defaults differ",
    "--linkage": "of a table, of one kind of picture",
    "--sigma": "the defaults differ",
    "--layers": "a sweep takes several",
}


def options(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str, Any]]:
    """Every option with its verb."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from options(inner, (*path, name))
    if not hasattr(command, "commands"):
        for parameter in command.params:
            if parameter.param_type_name == "option":
                yield parameter.opts[0], " ".join(path), parameter


ALL = list(options(typer.main.get_command(app)))


@pytest.mark.parametrize("name", sorted({name for name, _, _ in ALL}))
def test_an_option_means_the_same_in_every_verb(name: str) -> None:
    found = [parameter for option, _, parameter in ALL if option == name]
    assert len({tuple(parameter.opts) for parameter in found}) == 1
    if name not in DIFFERENT:
        assert len({parameter.help for parameter in found}) == 1
        assert len({parameter.metavar for parameter in found}) == 1


def test_every_exception_is_one() -> None:
    words: dict[str, set[str]] = {}
    for name, _, parameter in ALL:
        words.setdefault(name, set()).add(parameter.help)
    assert {name for name, found in words.items() if len(found) > 1} == set(DIFFERENT)
