"""`fathometer linearize` and `fathometer sites --cost`, on a small network of the user's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import fathometer
from tests.cli.conftest import Command

NETWORK = """
import torch
from torch import nn

def build():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.GELU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
    )
"""
BUILD = ("straightnets:build", "--weights", "none", "--data", "images.npz")


@pytest.fixture
def linearize(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command in a folder with a network and images."""
    (tmp_path / "straightnets.py").write_text(NETWORK, "utf-8")
    monkeypatch.delitem(sys.modules, "straightnets", raising=False)
    draw = np.random.default_rng(0)
    images = draw.integers(0, 255, (40, 12, 12, 3), dtype=np.uint8)
    np.savez(tmp_path / "images.npz", images=images, labels=draw.integers(0, 4, 40))
    return command


def test_a_network_is_linearized_and_its_result_read_again(linearize: Command, tmp_path: Path) -> None:
    code, printed, _ = linearize(
        "linearize", *BUILD, "--budget", "1", "--save", "net.pt", "--test", "images.npz"
    )
    assert code == 0
    assert "1 of 2 sites replaced" in printed
    found = fathometer.load(tmp_path / "build-images-linearized.json")
    assert isinstance(found, fathometer.Linearized)
    assert len(found.replaced) == 1
    state = torch.load(tmp_path / "net.pt")
    assert sum("linear_maps" in name for name in state) == 2
    assert not list(tmp_path.glob(".*journal*"))
    assert linearize("report", "build-images-linearized.json")[0] == 0
    assert linearize("plot", "build-images-linearized.json", "-o", "curve.svg")[0] == 0


def test_costs_of_sites_are_listed(linearize: Command) -> None:
    code, printed, _ = linearize("sites", *BUILD, "--cost", "--json")
    rows = json.loads(printed)
    assert code == 0
    assert sorted(row["site"] for row in rows) == ["1", "3"]
    assert rows[0]["kl"] <= rows[1]["kl"]
    code, _, error = linearize("sites", "straightnets:build", "--cost")
    assert code != 0
    assert "--cost needs --data" in error


def test_a_mistake_is_one_line_that_names_the_flag(linearize: Command) -> None:
    code, _, error = linearize("linearize", *BUILD, "--budget", "9")
    assert (code, error.count("\n")) == (2, 1)
    assert "--budget: expected at most 2, the number of sites, got 9" in error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--save", "net.json"), "--save net.json: expected a name that ends in .pt or .pth"),
        (("--save", "net.pt", "--weights", "net.pt", "--force"), "--save: would replace the weights"),
    ],
)
def test_what_would_be_lost_is_not_saved(linearize: Command, options: tuple[str, ...], words: str) -> None:
    code, _, error = linearize("linearize", *BUILD, "--budget", "1", *options)
    assert code == 2
    assert words in error
