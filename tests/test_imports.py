"""Imports go one way (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "fathometer"
LAYERS = [
    {"errors"},
    {"arrays", "files", "inputs", "progress", "user_code"},
    {"transport"},
    {"gauges", "capture", "provenance"},
    {"activations", "models", "data", "feeding", "journal", "leaky", "penalty"},
    {"sounding"},
    {"compare", "history"},
    {"sounding_file"},
    {"history_file"},
    {"report"},
    {"measure", "subject"},
    {"integrations", "residual", "survey"},
    {"reproduce"},
    {"cli"},
]
RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}


def imported(path: Path) -> Iterator[str]:
    """The parts of the package that a file imports when it is itself imported."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fathometer."):
            yield str(node.module).split(".")[1]


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_imports_only_what_lies_below(path: Path) -> None:
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if part in ("__init__", "__main__"):
        return
    for other in imported(path):
        assert other == part or RANK[other] < RANK[part], f"{part} imports {other}"
