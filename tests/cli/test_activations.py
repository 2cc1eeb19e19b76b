from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

from fathometer import __version__
from fathometer.cli import main

SMALL = ["--means", "3", "--stds", "1,.1", "--samples", "40", "--features", "4"]


def run(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["fathometer", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def test_a_table_a_picture_and_a_csv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "atlas.svg"
    assert (
        run("activations", "atlas", "relu", "Mish", *SMALL, "--out", str(out), monkeypatch=monkeypatch) == 0
    )
    printed = capsys.readouterr().out
    assert "ReLU" in printed
    assert "Mish" in printed
    assert out.read_text().startswith("<?xml")
    table = pd.read_csv(out.with_suffix(".csv"))
    assert len(table) == 2 * 3 * 2
    assert {"activation", "mean", "std", "score", "coupling"} <= set(table.columns)
    assert [p.name for p in out.parent.iterdir() if p.name.startswith(".")] == []


@pytest.mark.parametrize("suffix", [".png", ".pdf"])
@pytest.mark.parametrize("mode", ["polynomials", "ranges"])
def test_figure_2(tmp_path: Path, suffix: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out = (tmp_path / "figure").with_suffix(suffix)
    assert run("activations", mode, "--samples", "50", "--out", str(out), monkeypatch=monkeypatch) == 0
    assert out.read_bytes()[:4] in (b"\x89PNG", b"%PDF")
    assert pd.read_csv(out.with_suffix(".csv"))["score"].between(0, 1).all()


def test_a_csv_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "scores.csv"
    assert run("activations", "polynomials", "--out", str(out), monkeypatch=monkeypatch) == 0
    assert [p.name for p in tmp_path.iterdir()] == ["scores.csv"]


def test_files_are_replaced_on_demand_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "scores.csv"
    out.write_text("precious")
    call = ("activations", "polynomials", "--out", str(out))
    assert run(*call, monkeypatch=monkeypatch) == 2
    assert "exists" in capsys.readouterr().err
    assert out.read_text() == "precious"
    assert run(*call, "--force", monkeypatch=monkeypatch) == 0
    assert out.read_text().startswith("degree,score")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["atlas", "Rellu"], "did you mean ReLU"),
        (["atlas", "--out", "atlas.gif"], "ends in .png"),
        (["atlas", "--stds", "1,a"], "--stds: expected numbers with commas"),
        (["atlas", "--stds", "0"], "above 0"),
        (["atlas", "--interval", "5"], "--interval: expected LOW:HIGH"),
        (["atlas", "--interval", "5:1"], "low < high"),
        (["atlas", "--samples", "1"], "greater than or equal to 2"),
        (["atlas", "--ridge", "-1"], "ridge"),
        (["atlas", "--device", "warp"], "--device: warp is not usable here"),
        (["polynomials", "--degrees", "99999999999999999999"], "from 1 to 10000"),
        (["atlas", "--device", "meta"], "--device: meta is not usable here"),
        (["atlas", "--device", "cuda:x:"], "--device: cuda:x: is not usable"),
        (["atlas", "--stds", "inf"], "finite numbers above 0"),
        (["atlas", "--out", "/proc/nowhere.png"], "cannot be written"),
        (["polynomials", "--degrees", "x"], "--degrees: expected"),
        (["ranges", "--ranges", "1"], "--ranges: expected LOW:HIGH"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_code_2(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("activations", *arguments, monkeypatch=monkeypatch) == 2
    printed = capsys.readouterr().err
    assert message in " ".join(printed.split())
    assert "Traceback" not in printed


def test_a_folder_is_no_place_to_write_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.csv").mkdir()
    out = str(tmp_path / "d.csv")
    assert run("activations", "polynomials", "--out", out, "--force", monkeypatch=monkeypatch) == 2
    assert "is a folder" in " ".join(capsys.readouterr().err.split())
    assert [p.name for p in tmp_path.iterdir()] == ["d.csv"]


@pytest.mark.parametrize("columns", ["60", "100"])
def test_numbers_are_whole_in_any_terminal(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert run("activations", "atlas", "ReLU", *SMALL, monkeypatch=monkeypatch) == 0
    printed = capsys.readouterr().out
    assert "ReLU" in printed
    assert "0…" not in printed
    assert ("by mean" in printed) == (columns == "100")


def test_without_matplotlib_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    out = str(tmp_path / "a.png")
    assert run("activations", "polynomials", "--out", out, monkeypatch=monkeypatch) == 2
    assert "fathometer[plot]" in capsys.readouterr().err


def test_version_and_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version", monkeypatch=monkeypatch) == 0
    assert __version__ in capsys.readouterr().out
    assert run("activations", "atlas", "--help", monkeypatch=monkeypatch) == 0
    assert "Figure 6" in capsys.readouterr().out
