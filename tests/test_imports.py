"""Imports go one way: the order stands in docs/architecture.md, and is read from there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fathometer"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
LAYERS = [line.split() for line in PAGE.split("```text\n")[1].split("```")[0].splitlines()][::-1]
RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}


def imported(path: Path) -> Iterator[str]:
    """The parts of the package that a file imports when it is itself imported."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module == "fathometer":
            yield from (alias.name for alias in node.names if alias.name in RANK)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fathometer."):
            yield str(node.module).split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("fathometer."))


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_imports_only_what_lies_below(path: Path) -> None:
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if part in ("__init__", "__main__"):
        return
    for other in imported(path):
        assert other == part or RANK[other] < RANK[part], f"{part} imports {other}"


def test_the_page_names_every_part_and_no_other() -> None:
    there = {path.stem for path in SOURCE.iterdir() if not path.name.startswith(("_", "py.typed"))}
    assert sorted(RANK) == sorted(there)


def test_the_page_names_files_that_are_there() -> None:
    table = PAGE.split("## Where things are")[1].split("## To add")[0]
    for parts, *_, begin in re.findall(r"^\| (`.+?) \| (.+?) \| (.+?) \|$", table, re.MULTILINE):
        names = re.findall(r"`(.+?)`", parts)
        for file in re.findall(r"`(.+?\.py)`", begin):
            assert any((SOURCE / name / file).is_file() or (SOURCE / file).is_file() for name in names), file
