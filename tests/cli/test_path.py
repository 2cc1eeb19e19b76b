from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fathometer import load
from tests.cli.conftest import Command

NETS = """
import torch
from torch import nn
from fathometer.data import Inputs

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

class Adding(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.inner, self.act = nn.Linear(5, 5), act
    def forward(self, x):
        return x + self.act(self.inner(x))

def mixed():
    return nn.Sequential(Adding(nn.ReLU()), Adding(nn.ReLU()), Adding(nn.GELU())), Inputs("tensor", (5,))

def plain():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3)), Inputs("image", (3, 8, 8))
"""


@pytest.fixture
def path(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`fathometer path` for one of these networks."""
    (tmp_path / "pathnets.py").write_text(NETS)
    monkeypatch.delitem(sys.modules, "pathnets", raising=False)

    def run(network: str, *args: str, count: int = 32) -> tuple[int, str, str]:
        return command("path", f"pathnets:{network}", "--data", f"random:{count}", "--samples", "32", *args)

    return run


def test_a_path_is_measured_drawn_and_shown(path: Command, command: Command) -> None:
    code, out, _ = path("blocks", count=64)
    lines = out.strip().splitlines()
    found = load("blocks-random-path.json")
    ranks = found.mean("stable_rank")
    assert (code, len(found.records)) == (0, 6)
    assert lines[-1].startswith(f"bottleneck: {ranks.idxmin()} (stable rank {ranks.min():.1f} of ")
    assert "no speed where the width changes: 1" in lines
    assert any("σ is relu" in line for line in lines)
    assert command("plot", "blocks-random-path.json", "-o", "p.png")[0] == 0
    assert Path("p.png").stat().st_size > 5000
    assert "stable_rank over 3 sites: min" in command("show", "blocks-random-path.json")[1]
    rows = json.loads(path("blocks", "--json", "--force")[1])["sites"]
    assert [row["site"] for row in rows] == ["0", "1", "2"]
    assert [row["speed"] is None for row in rows] == [False, True, False]
    code, _, err = path("blocks")
    assert (code, "blocks-random-path.json exists" in err) == (2, True)


def test_blocks_by_pattern(path: Command) -> None:
    code, _, err = path("plain", "--out", "p.parquet")
    assert (code, "--blocks: no residual blocks found" in err) == (2, True)
    assert not Path("p.parquet").exists()
    given = ["--blocks", "Conv2d", "--sigma", "gelu", "--gamma", "0.1"]
    assert path("plain", "--out", "p.parquet", *given)[0] == 0
    found = load("p.parquet")
    assert [site.name for site in found.sites] == ["0", "2"]
    assert found.provenance.settings["path"] == {"blocks": "given", "sigma": "gelu", "gamma": 0.1}


def test_a_few_samples_that_carry_the_norm_are_pointed_out(path: Command) -> None:
    assert "a few samples carry the norm of 2 blocks (3.1% of them at " in path("sinks")[1]
    assert load("sinks-random-path.json").mean("participation").to_numpy() == pytest.approx(1 / 32)


def test_each_block_has_its_own_activation_unless_one_is_given(path: Command) -> None:
    assert "σ is each block's own" in path("mixed")[1]
    sigma = load("mixed-random-path.json").provenance.settings["path"]["sigma"]
    assert sigma == {"0": "relu", "1": "relu", "2": "gelu"}
    assert "σ is tanh" in path("mixed", "--sigma", "tanh", "--out", "tanh.json")[1]
