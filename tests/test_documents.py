"""Code and commands in the documents run and print what is shown, and links lead to files."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

import fathometer
from fathometer.cli.app import app
from fathometer.models import ensure_torchvision_operators

ensure_torchvision_operators()  # transformers needs them, also where torch and torchvision do not match

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
COMMANDS_RUN = [DOCS / "tour.md", DOCS / "survey.md", *sorted((DOCS / "how-to").glob("*.md"))]
"""Pages whose `console` blocks are run. Commands that need a download or a cluster are in `bash` blocks."""
TOLERANCE = 0.05  # training gives slightly different numbers on another processor
NUMBER = re.compile(r"[-−+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?")
LIBRARIES = [
    "fathometer",
    *(
        f"fathometer.{name}"
        for name in (
            "activations capture compare data gauges leaky leaky.theory linearizing models training "
            "reference residual survey testing transport"
        ).split()
    ),
]


class Block(NamedTuple):
    """A fenced block: its language, text, file name if it is a file, and line."""

    language: str
    text: str
    title: str | None
    line: int


def blocks_of(page: Path) -> list[Block]:
    found = re.finditer(
        r'^```(\w+)(?: title="(.+?)")?\n(.*?)^```$', page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    return [Block(m[1], m[3], m[2], m.string.count("\n", 0, m.start()) + 2) for m in found]


def runs(page: Path) -> bool:
    languages = {block.language for block in blocks_of(page) if not block.title}
    return "python" in languages or ("console" in languages and page in COMMANDS_RUN)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if runs(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all blocks in one folder and one namespace."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    printed, names = "", {"__name__": "__main__"}
    with modules_forgotten(tmp_path):
        for block in blocks_of(page):
            place = f"{page.name}, line {block.line}"
            if block.title:
                (tmp_path / block.title).write_text(block.text, "utf-8")
            elif block.language == "python":
                printed = output_of(block, place, names)
            elif block.language == "console" and page in COMMANDS_RUN:
                printed = "".join(output_of_command(line, place) for line in commands(block.text))
            elif block.language == "text" and printed:
                assert block.text.strip(), place
                assert says(block.text, printed), f"{place}: it printed\n{printed}"
                printed = ""


def output_of(block: Block, place: str, names: dict[str, Any]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        exec(compile("\n" * (block.line - 1) + block.text, place, "exec"), names)
    return stream.getvalue()


def commands(text: str) -> list[str]:
    lines = [line.strip() for line in text.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def output_of_command(line: str, place: str) -> str:
    program, *arguments = shlex.split(line, comments=True)
    assert program == "fathometer", f"{place}: only fathometer's commands are run, not {program}"
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, f"{place}: {line}\n{result.output}\n{result.exception!r}"
    return result.stdout


@contextlib.contextmanager
def modules_forgotten(folder: Path) -> Iterator[None]:
    """Forget what a page imports from its folder before the next page runs."""
    yield
    inside = [
        name for name, module in sys.modules.items() if str(folder) in str(getattr(module, "__file__", ""))
    ]
    for name in inside:
        del sys.modules[name]


def says(shown: str, printed: str) -> bool:
    """Whether the words are printed in this order, with similar numbers; a line of … stands for any lines."""
    rest = tokens(printed)
    for part in re.split(r"^\s*…\s*$", shown, flags=re.MULTILINE):
        wanted = tokens(part)
        starts = range(len(rest) - len(wanted) + 1)
        place = next((i for i in starts if all(map(alike, wanted, rest[i:]))), None)
        if place is None:
            return False
        rest = rest[place + len(wanted) :]
    return True


def tokens(text: str) -> list[str]:
    return re.sub(r"[│┃┏┓┗┛┳┻╇╈┡┩┌┐└┘├┤┬┴┼━─═╷╵╭╮╰╯\u2580-\u259f]", " ", text).split()


def alike(one: str, other: str) -> bool:
    numbers = [
        [float(found.replace("−", "-").replace(",", "")) for found in NUMBER.findall(t)] for t in (one, other)
    ]
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    return all(abs(a - b) <= TOLERANCE * max(1, abs(a)) for a, b in zip(*numbers, strict=True))


def test_the_comparison_finds_differences() -> None:
    assert says("a 0.50\n…\nc", "│ a │ 0.51 ██ │\nb\nc")
    assert not says("a 0.50", "a 0.56")
    assert not says("a 0.50", "b 0.50")
    assert not says("c\n…\na", "a\nb\nc")


def test_there_are_pages_that_run() -> None:
    assert len([page for page in PAGES if runs(page)]) >= 12


@pytest.mark.parametrize(
    "path",
    [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("benchmarks/*.md")],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_links_lead_to_files(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text("utf-8"))
    local = [target for target in targets if "://" not in target]
    made = {DOCS / "reference/commands.md", DOCS / "reference-networks.html"}  # when the site is built
    found = [path.parent / target for target in local]
    assert [target for target in found if not target.exists() and target.resolve() not in made] == []


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_public_name_is_in_the_reference(library: str) -> None:
    pages = "\n".join(page.read_text("utf-8") for page in (DOCS / "reference").glob("*.md"))
    named = set(re.findall(r"^::: fathometer\.(?:[\w.]+\.)?(\w+)$", pages, re.MULTILINE))
    module = importlib.import_module(library)
    public = {name for name in module.__all__ if not isinstance(getattr(module, name), str | ModuleType)}
    errors = set(vars(importlib.import_module("fathometer.errors")))  # a whole module
    assert public - named - errors == set()


def test_pictures_are_small() -> None:
    assert {path.name for path in (DOCS / "images").iterdir() if path.stat().st_size > 350_000} == set()


def test_the_conda_recipe_agrees_with_the_package() -> None:
    """The same version, and the same dependencies under conda's names."""
    recipe = (ROOT / "conda/recipe.yaml").read_text("utf-8")
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [f"python{project['requires-python']}", *project["dependencies"]]
    given = [line.strip("- ").replace(" ", "").replace("pytorch>", "torch>") for line in run.splitlines()]
    assert given == wanted
    assert f'version: "{fathometer.__version__}"' in recipe
