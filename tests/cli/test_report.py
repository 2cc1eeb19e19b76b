from __future__ import annotations

import re
import webbrowser
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fathometer.cli.app import app
from fathometer.errors import InputError
from fathometer.results.history import History
from tests.report.figures.drawn import network


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four soundings in `nets`, two beside it, and a history."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets").mkdir()
    for i in range(4):
        network(f"net{i}", 8 + i, seed=i).save(tmp_path / "nets" / f"{i}.json")
    network("mine", 8).save(tmp_path / "mine.json")
    network("yours", 9, seed=1).save(tmp_path / "yours.json")
    soundings = tuple(network("mine", 8, seed=seed, rank=np.arange(8.0)) for seed in range(3))
    History((0, 5, 9), soundings).save(tmp_path / "h.json")
    (tmp_path / "facts.csv").write_text("network,family\nnet0,Elders\nnet1,Elders\nmine,Elders\n")
    return tmp_path


def run(*args: str) -> str:
    result = CliRunner().invoke(app, ["report", *args], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def page(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    assert text.lstrip().lower().startswith("<!doctype html>")
    return text


def test_one_sounding(folder: Path) -> None:
    assert re.search(r"wrote mine\.html \(\d+\.\d MB\)", run("mine.json"))
    assert "layer0.0.act0" in page(folder / "mine.html")
    run("mine.json", "--title", "What a net", "-o", "new/titled.htm")
    assert "<title>What a net" in page(folder / "new" / "titled.htm")


def test_several_soundings(folder: Path) -> None:
    run("mine.json", "yours.json", "-o", "both.html", "--family", "Elders=m*")
    text = page(folder / "both.html")
    for words in ("mine", "yours", "Elders"):
        assert words in text


def test_a_folder_is_an_atlas(folder: Path) -> None:
    with pytest.warns(UserWarning, match="no sounding of mine"):
        assert "wrote nets.html" in run("nets", "--families", "facts.csv")
    text = page(folder / "nets.html")
    for words in ("net0", "net3", "Elders"):
        assert words in text


@pytest.mark.filterwarnings("ignore:.*not at a critical point")
def test_a_leaky_sweep(leaky_runs: Path, folder: Path) -> None:
    assert "wrote depths.html" in run(str(leaky_runs / "depths"))
    page(folder / "depths.html")
    with pytest.raises(InputError, match="--families: has no effect on a report of"):
        run(str(leaky_runs / "depths"), "--families", "facts.csv", "-o", "other.html")
    with pytest.raises(InputError, match="is a sweep of Leaky ResNets; report or plot it alone"):
        run("mine.json", str(leaky_runs / "depths"), "-o", "other.html")
    assert not (folder / "other.html").exists()


def test_a_history(folder: Path) -> None:
    assert "wrote h.html" in run("h.json")
    assert "mine" in page(folder / "h.html")


def test_a_stray_file_in_a_folder_is_skipped_unless_strict(folder: Path) -> None:
    (folder / "nets" / "config.json").write_text("{}")
    with pytest.warns(UserWarning, match=r"skipped 1 file: nets/config\.json: not a sounding"):
        assert "wrote" in run("nets", "-o", "a.html")
    assert "wrote" in run("mine.json", "--strict")
    with pytest.raises(InputError, match=r"nets/config.json: not a sounding"):
        run("nets", "-o", "b.html", "--strict")


def test_a_folder_is_read_by_url(folder: Path) -> None:
    import fsspec

    fsspec.filesystem("memory").put(str(folder / "nets"), "/of-a-report", recursive=True)
    run("nets", "-o", "here.html")
    run("memory://of-a-report", "-o", "there.html")
    assert (folder / "here.html").stat().st_size == (folder / "there.html").stat().st_size


def test_the_page_is_opened_on_request(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    run("mine.json", "-o", "a.html")
    assert not opened
    run("mine.json", "-o", "b.html", "--open")
    assert opened == [(folder / "b.html").resolve().as_uri()]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["mine.json", "-o", "a.pdf"], "--out a.pdf: expected a name that ends in .html"),
        (["empty"], "empty: expected a sounding (.json or .parquet) in this folder, got none"),
        (["mine.json", "h.json"], "h.json: is the history of a training; report or plot it alone"),
        (["nets", "--allow-mismatch"], "--allow-mismatch: has no effect on a report of an atlas"),
    ],
)
def test_bad_requests_are_explained_and_write_nothing(args: list[str], words: str, folder: Path) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match=re.escape(words)):
        run(*args)
    assert not list(folder.glob("*.htm*"))
