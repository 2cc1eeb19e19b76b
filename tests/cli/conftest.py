from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fathometer.cli import main
from fathometer.leaky import grid, sweep
from tests.leaky.networks import SHORT, SMALL

Command = Callable[..., tuple[int, str, str]]


def call(*args: str) -> int:
    """Run `fathometer` in this process and return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["fathometer", *args])
        with pytest.raises(SystemExit) as stop:
            main()
    return int(stop.value.code or 0)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `fathometer` in an empty folder; return exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*args: str) -> tuple[int, str, str]:
        capsys.readouterr()
        return call(*args), *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def leaky_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `one`, a leaky network, and `depths`, a sweep of two depths."""
    folder = tmp_path_factory.mktemp("leaky")
    sweep(SMALL, SHORT, threads=1, out=folder / "one")
    sweep(grid(SMALL, effective_depth=[1.0, 3.0]), SHORT, threads=1, out=folder / "depths")
    return folder
