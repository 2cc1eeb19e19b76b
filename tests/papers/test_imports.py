"""The reproduction uses only what users have too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import fathometer

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "papers").rglob("*.py"))
PARTS = {f"fathometer.{path.stem}" for path in Path(fathometer.__file__).parent.iterdir()}
LEAKY = {
    ".".join(path.relative_to(Path(fathometer.__file__).parents[1]).with_suffix("").parts)
    for path in (Path(fathometer.__file__).parent / "leaky").rglob("[a-z]*.py")
}  # single formulas, for theorists
PUBLIC = {"fathometer", "fathometer.leaky.theory", *PARTS, *LEAKY} - {"fathometer.cli"}


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Modules of fathometer, and the names that are taken from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name, "") for name in node.names if name.name.startswith("fathometer"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fathometer"):
            yield from ((str(node.module), name.name) for name in node.names)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_papers_import_only_public_names(file: Path) -> None:
    found = list(imported(ast.parse(file.read_text("utf-8"))))
    assert [module for module, _ in found if module not in PUBLIC] == []
    assert [name for _, name in found if name.startswith("_")] == []


def test_papers_are_not_in_the_wheel() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/fathometer"]
