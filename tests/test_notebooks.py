"""The notebooks run, and show the same kinds of output as in the repository."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from ipykernel.kernelspec import write_kernel_spec
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "docs/notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.fixture
def _this_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a kernel `python3` that is found before any other."""
    write_kernel_spec(tmp_path / "kernels/python3")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def shown(notebook: nbformat.NotebookNode) -> list[tuple[str, list[str]]]:
    """List the kinds of output of each cell: text, tables, pictures."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [
        (cell.source, sorted({kind for output in cell.outputs for kind in output.get("data", {"text": ""})}))
        for cell in cells
    ]


@pytest.mark.usefixtures("_this_interpreter")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    committed = shown(notebook)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert shown(notebook) == committed


def test_the_two_notebooks_are_small() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["01-first-sounding", "02-bottleneck"]
    assert all(path.stat().st_size < 300_000 for path in NOTEBOOKS)
    assert all("/home/" not in path.read_text("utf-8") for path in NOTEBOOKS)
