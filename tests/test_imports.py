"""Imports go one way, in the order that docs/architecture.md gives, and only what is used is imported."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fathometer"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
LAYERS = [line.split() for line in PAGE.split("```text\n")[1].split("```")[0].splitlines()][::-1]
FILES = sorted(SOURCE.rglob("*.py"))
RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}


WHEN_ASKED = {  # a result imports `report` in the method that draws it; one `load` reads every kind of result
    ("activations", "report"),
    ("compare", "report"),
    ("leaky", "report"),
    ("results", "checking"),
    ("results", "leaky"),
    ("results", "report"),
}


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Name the parts of the package that some statements import."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == "fathometer":
            yield from (alias.name for alias in node.names if alias.name in RANK)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fathometer."):
            yield str(node.module).split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("fathometer."))


def upwards(path: Path) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Name what a file imports from its own line or above: at import time, and inside functions."""
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if part in ("__init__", "__main__"):
        return set(), set()
    tree = ast.parse(path.read_text("utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    within = {id(inner) for function in functions for inner in ast.walk(function)}
    late = imported(node for node in ast.walk(tree) if id(node) in within)
    early = imported(node for node in ast.walk(tree) if id(node) not in within)

    def above(others: Iterable[str]) -> set[tuple[str, str]]:
        return {(part, other) for other in others if other != part and RANK[other] >= RANK[part]}

    return above(early), above(late)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_imports_only_parts_below(path: Path) -> None:
    early, late = upwards(path)
    assert not early
    assert late <= WHEN_ASKED


def test_every_exception_is_needed() -> None:
    assert {pair for path in FILES for pair in upwards(path)[1]} == WHEN_ASKED


def test_the_page_names_every_part() -> None:
    there = {path.stem for path in SOURCE.iterdir() if not path.name.startswith(("_", "py.typed"))}
    assert sorted(RANK) == sorted(there)


def test_the_files_that_the_page_names_exist() -> None:
    table = PAGE.split("## Where things are")[1].split("## Adding")[0]
    for parts, *_, begin in re.findall(r"^\| (`.+?) \| (.+?) \| (.+?) \|$", table, re.MULTILINE):
        names = re.findall(r"`(.+?)`", parts)
        for file in re.findall(r"`(.+?\.py)`", begin):
            assert any((SOURCE / name / file).is_file() or (SOURCE / file).is_file() for name in names), file


def loaded(statements: str) -> set[str]:
    """Run statements in a fresh interpreter, and name the modules that are loaded then."""
    code = f"import sys\n{statements}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_importing_the_package_loads_no_part_of_it() -> None:
    modules = loaded("import fathometer")
    assert {name for name in modules if name.startswith("fathometer.")} <= {"fathometer.errors"}
    assert not modules & {"torch", "numpy", "pandas", "scipy", "matplotlib"}


def test_measuring_loads_neither_reports_nor_surveys() -> None:
    modules = loaded("import fathometer\nfathometer.measure")
    parts = ("leaky", "survey", "compare", "report", "residual", "training", "testing", "cli", "activations")
    assert not modules & {f"fathometer.{part}" for part in parts}
    assert not modules & {"matplotlib", "sklearn", "transformers", "timm", "ray", "datasets"}
