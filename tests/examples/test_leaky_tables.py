from __future__ import annotations

import importlib
from pathlib import Path

import pandas as pd
import pytest

leaky_tables = importlib.import_module("examples.leaky_tables")


@pytest.mark.filterwarnings("ignore:.*not at a critical point")
def test_tables_are_printed_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leaky_tables.main(["centred", "schemes-small", "--smoke", "--out", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "γ₀ = 0.001: COI" in shown
    assert pd.read_csv(tmp_path / "centred.csv")["rank_of_task"].to_list() == [2, 3, 4]
    assert pd.read_csv(tmp_path / "schemes-small.csv")["scheme"].to_list() == ["adaptive", "irregular"]
    assert (tmp_path / "schemes-small-2a.png").exists()
