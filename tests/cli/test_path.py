from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fathometer import load
from fathometer.cli import main

NETS = """
import torch
from torch import nn
from fathometer.data.inputs import Inputs

class Block(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.conv = nn.Conv2d(before, after, 3, padding=1)
        self.short = nn.Conv2d(before, after, 1) if before != after else nn.Identity()
    def forward(self, x):
        return torch.relu(self.short(x) + self.conv(x))

def blocks():
    return nn.Sequential(Block(3, 3), Block(3, 6), Block(6, 6)), Inputs("image", (3, 8, 8))

class Sink(nn.Module):
    def forward(self, x):
        big = torch.zeros(len(x), 1)
        big[0] = 1e4
        return x + big * torch.relu(x @ torch.ones(5, 5))

def sinks():
    return nn.Sequential(Sink(), Sink()), Inputs("tensor", (5,))

class Bent(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.inner, self.act = nn.Linear(5, 5), act
    def forward(self, x):
        return x + self.act(self.inner(x))

def mixed():
    return nn.Sequential(Bent(nn.ReLU()), Bent(nn.ReLU()), Bent(nn.GELU())), Inputs("tensor", (5,))

def plain():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3)), Inputs("image", (3, 8, 8))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pathnets.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delitem(sys.modules, "pathnets", raising=False)
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["fathometer", *args])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def test_a_path_by_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["path", "pathnets:blocks", "--data", "random:60", "--samples", "30"]
    assert run(monkeypatch, *given) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    path = load(folder / "blocks-random-path.json")
    ranks = path.mean("stable_rank")
    assert lines[-1].startswith(f"bottleneck: {ranks.idxmin()} (stable rank {ranks.min():.1f} of ")
    assert "no speed where the width changes: 1" in lines
    assert any("σ is relu" in line for line in lines)
    assert run(monkeypatch, "plot", "blocks-random-path.json", "-o", "p.png") == 0
    assert (folder / "p.png").stat().st_size > 5000
    assert len(path.records) == 6
    assert run(monkeypatch, "show", "blocks-random-path.json") == 0
    assert "stable_rank over 3 sites: min" in capsys.readouterr().out
    assert run(monkeypatch, *given, "--json", "--force") == 0
    rows = json.loads(capsys.readouterr().out)["sites"]
    assert [row["site"] for row in rows] == ["0", "1", "2"]
    assert [row["speed"] is None for row in rows] == [False, True, False]
    assert run(monkeypatch, *given) == 2
    assert "blocks-random-path.json exists" in capsys.readouterr().err


def test_blocks_by_pattern(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["path", "pathnets:plain", "--data", "random:60", "--samples", "30", "--out", "p.parquet"]
    assert run(monkeypatch, *given) == 2
    assert "--blocks: no residual blocks found" in capsys.readouterr().err
    assert not (folder / "p.parquet").exists()
    assert run(monkeypatch, *given, "--blocks", "Conv2d", "--sigma", "gelu", "--gamma", "0.1") == 0
    path = load(folder / "p.parquet")
    assert [site.name for site in path.sites] == ["0", "2"]
    assert path.provenance.settings["path"] == {"blocks": "given", "sigma": "gelu", "gamma": 0.1}


def test_a_few_samples_that_carry_all_are_pointed_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "path", "pathnets:sinks", "--data", "random:32", "--samples", "32") == 0
    assert "a few samples carry the norm of 2 blocks (3.1% of them at " in capsys.readouterr().out
    assert load(folder / "sinks-random-path.json").mean("carriers").to_numpy() == pytest.approx(1 / 32)


def test_activations_that_differ_have_a_column(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["path", "pathnets:mixed", "--data", "random:32", "--samples", "32"]
    assert run(monkeypatch, *given) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("σ is each block's own" in line for line in lines)
    sigma = load(folder / "mixed-random-path.json").provenance.settings["path"]["sigma"]
    assert sigma == {"0": "relu", "1": "relu", "2": "gelu"}
    assert run(monkeypatch, *given, "--sigma", "tanh", "--out", "tanh.json") == 0
    assert "σ is tanh" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "p.csv"], "--out p.csv: expected a name that ends in .json or .parquet"),
        (["--sigma", "much"], "sigma: expected a function or one of celu"),
        (["--gamma", "-1"], "gamma: expected a finite number > 0, got -1.0"),
        (["--blocks", "layer9"], "no module that is called is 'layer9'"),
    ],
)
def test_bad_input_is_one_line(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    assert (
        run(monkeypatch, "path", "pathnets:blocks", "--data", "random:40", "--samples", "20", *options) == 2
    )
    assert message in " ".join(capsys.readouterr().err.split())
    assert not list(folder.glob("*.json"))
