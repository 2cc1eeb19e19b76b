"""`fathometer check`: findings in the terminal, and an exit code for CI."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fathometer import Checkup, load
from tests.cli.conftest import Command

NETS = """
import torch
from torch import nn
from fathometer.data import Inputs

def dead():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
    net[0].bias.data.fill_(-100)
    return net, Inputs("tensor", (6,))

def alive():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3)), Inputs("tensor", (6,))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "checked_nets.py").write_text(NETS)
    monkeypatch.delitem(sys.modules, "checked_nets", raising=False)
    return tmp_path


def test_the_exit_code_follows_the_severity(folder: Path, command: Command) -> None:
    asked = ("--data", "random:256", "--samples", "256")
    code, out, _ = command("check", "checked_nets:dead", *asked, "-o", "found.json")
    assert code == 1
    assert "error  1: 32 of 32 channels never change over 256 samples" in out
    assert "Try: Look at the layer before it" in " ".join(out.split())
    assert isinstance(load(folder / "found.json"), Checkup)
    code, out, _ = command("check", "checked_nets:alive", *asked, "--json")
    assert code == 0
    assert json.loads(out)["schema"] == "fathometer.checkup"


@pytest.mark.usefixtures("folder")
def test_a_file_of_a_sounding_is_checked(command: Command) -> None:
    command("measure", "checked_nets:dead", "--data", "random:256", "--samples", "256", "-o", "net.json")
    code, out, _ = command("check", "net.json")
    assert code == 1
    assert "the layer passes nothing on" in " ".join(out.split())
    _, out, _ = command("show", "net.json")
    assert "check: 1 error" in out
    for arguments, message in (
        (("net.json", "--samples", "3"), "--samples: has no effect on the check of a sounding; leave it out"),
        (("checked_nets:dead",), "needs --data, or the file of a sounding as MODEL"),
    ):
        code, _, err = command("check", *arguments)
        assert code == 2
        assert message in " ".join(err.split())
