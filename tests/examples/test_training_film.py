from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from PIL import Image

from fathometer import load_history

film = importlib.import_module("examples.training_film")  # a script, not a package: mypy would see it twice


def test_a_history_a_picture_and_what_they_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    out = tmp_path / "new" / "demo"
    film.main(["--out", str(out), "--epochs", "1"])
    history = load_history(out / "history.json")
    assert history.steps[0] == 0
    assert history.steps[-1] == 20
    assert list(history.signature.columns) == [f"relu{i}" for i in range(1, 13)]
    assert list(history.metric("loss").index) == list(range(1, 21))
    assert history.metric("loss").iloc[-5:].mean() < history.metric("loss").iloc[:5].mean()
    assert history.cost.bound == 0.05
    with Image.open(out / "training.png") as picture:
        assert picture.size[0] == 2160
    said = capsys.readouterr().out
    assert f"relu12 │ {float(history.signature['relu12'].iloc[0]):.3f} " in said
    assert f"measuring took {history.cost}" in said


def test_epochs_start_at_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        film.main(["--epochs", "0"])
    assert "from 1" in capsys.readouterr().err
