from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

bottleneck = importlib.import_module(
    "examples.bottleneck"
)  # a script, not a package: mypy would see it twice


def test_it_trains_shows_and_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(bottleneck, "RANKS", (2,))
    bottleneck.main(["--out", str(tmp_path / "new" / "demo")])
    assert re.search(r"k = 2\W+2\W+1\.9", capsys.readouterr().out)
    assert (tmp_path / "new" / "demo" / "bottleneck.png").stat().st_size > 10_000
