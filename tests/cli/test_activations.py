from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from fathometer import __version__
from tests.cli.conftest import Command

SMALL = ["--means", "3", "--stds", "1,.1", "--samples", "40", "--features", "4"]


def test_atlas_prints_a_table_and_writes_a_picture_and_a_csv(command: Command, tmp_path: Path) -> None:
    code, printed, _ = command("activations", "atlas", "relu", "Mish", *SMALL, "--out", "new/atlas.svg")
    assert (code, "ReLU" in printed, "Mish" in printed) == (0, True, True)
    assert (tmp_path / "new/atlas.svg").read_text().startswith("<?xml")
    table = pd.read_csv("new/atlas.csv")
    assert len(table) == 2 * 3 * 2
    assert {"activation", "mean", "std", "score", "coupling"} <= set(table.columns)
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"atlas.svg", "atlas.csv"}


@pytest.mark.parametrize(("mode", "suffix"), [("polynomials", ".png"), ("ranges", ".pdf")])
def test_figure_2(mode: str, suffix: str, command: Command) -> None:
    assert command("activations", mode, "--samples", "50", "--out", f"figure{suffix}")[0] == 0
    assert Path(f"figure{suffix}").read_bytes()[:4] in (b"\x89PNG", b"%PDF")
    table = pd.read_csv("figure.csv")
    assert table["score"].between(0, 1).all()
    rows = json.loads(command("activations", mode, "--samples", "50", "--json")[1])
    assert [row["score"] for row in rows] == pytest.approx(table["score"].to_list())


def test_a_file_is_replaced_only_with_force(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    out.write_text("precious")
    code, _, err = command("activations", "polynomials", "--out", "scores.csv")
    assert (code, "exists" in err, out.read_text()) == (2, True, "precious")
    assert command("activations", "polynomials", "--out", "scores.csv", "--force")[0] == 0
    assert out.read_text().startswith("degree,score")
    assert list(tmp_path.iterdir()) == [out]  # no picture beside a table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["atlas", "--out", "atlas.gif"], "ends in .png"),
        (["atlas", "--out", "/proc/nowhere.png"], "cannot be written"),
        (["polynomials", "--out", "folder.csv", "--force"], "is a folder"),
        (["atlas", "--stds", "1,a"], "--stds: expected numbers with commas"),
        (["atlas", "--interval", "5"], "--interval: expected LOW:HIGH"),
        (["atlas", "--device", "warp"], "--device: warp is not usable here"),
    ],
)
def test_bad_arguments_end_with_code_2(arguments: list[str], message: str, command: Command) -> None:
    Path("folder.csv").mkdir()
    code, _, err = command("activations", *arguments)
    assert code == 2
    assert message in " ".join(err.split())
    assert "Traceback" not in err


def test_without_matplotlib_the_extra_is_named(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = command("activations", "polynomials", "--out", "a.png")
    assert (code, "fathometer[plot]" in err) == (2, True)


def test_version_and_help(command: Command) -> None:
    assert __version__ in command("--version")[1]
    assert "how non-linear, how many dimensions, how fast" in command("--help")[1]
