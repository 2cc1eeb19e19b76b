"""`fathometer film`: checkpoints become a history, and `--call` runs networks with other inputs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import fathometer
from fathometer import History
from fathometer.models import ensure_torchvision_operators
from tests.cli.conftest import Command
from tests.measuring.test_texts import letter_tokenizer

NETS = """
import torch
from torch import nn
from fathometer.data import Inputs

def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3)), Inputs("tensor", (6,))

class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = build()[0]

    def forward(self, rows: list):
        return {"found": self.inner(torch.stack(rows))}

def listed():
    return Listed(), Inputs("tensor", (6,))

def as_list(model, item):
    return model(list(item))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "film_nets.py").write_text(NETS)
    monkeypatch.delitem(sys.modules, "film_nets", raising=False)
    return tmp_path


def test_checkpoints_become_a_film(folder: Path, command: Command) -> None:
    torch.manual_seed(0)
    x = torch.randn(300, 6)
    np.savez(folder / "test.npz", x=x.numpy(), y=(x[:, 0] > 0).long().numpy())
    first = torch.nn.Linear(6, 32)
    net = torch.nn.Sequential(first, torch.nn.ReLU(), torch.nn.Linear(32, 3))
    for step in (9, 10, 200):
        if step == 200:
            torch.nn.init.constant_(first.bias, -100.0)
        torch.save(net.state_dict(), folder / f"epoch-{step}.pt")
    names = [f"epoch-{step}.pt" for step in (10, 200, 9)]
    shared = ("--data", "test.npz", "--samples", "200")
    code, out, _ = command("film", *names, *shared, "--model", "film_nets:build")
    assert code == 0
    assert "step 200: error: 1: 32 of 32 channels never change" in out
    history = fathometer.load(folder / "build-test-film.json")
    assert isinstance(history, History)
    assert history.steps == (9, 10, 200)
    assert history.signature["1"].iloc[0] == history.signature["1"].iloc[1] < 1
    assert history.metric("accuracy").index.to_list() == [9, 10, 200]
    assert {s.provenance.model["name"] for s in history.soundings} == {"film_nets:build"}
    assert command("report", "build-test-film.json")[0] == 0
    for arguments, message in (
        ((*names, *shared), "--model: needed to load epoch-10.pt, e.g. package.module:factory"),
        (
            ("film_nets.py", *shared, "--model", "film_nets:build"),
            "--steps: the steps are not clear from film_nets;",
        ),
        (
            (*names, *shared, "--model", "film_nets:build", "--steps", "1,1,2", "--force"),
            "--steps: expected 3 ",
        ),
        (("epoch-7.pt", *shared, "--model", "film_nets:build"), "epoch-7.pt: no such file or folder"),
    ):
        code, _, err = command("film", *arguments)
        assert code == 2
        assert f"error: {message}" in err


@pytest.mark.usefixtures("folder")
def test_a_call_runs_networks_with_other_inputs(command: Command) -> None:
    call = ("film_nets:listed", "--call", "film_nets:as_list")
    noise = ("--data", "random:200", "--samples", "200")
    for arguments in (("sites", *call), ("check", *call, *noise), ("measure", *call, *noise)):
        code, out, err = command(*arguments)
        assert code == 0, err
        assert "inner.1" in out or "15 rules applied" in out
    code, _, err = command("sites", *call, "--cost", "--data", "random:200")
    assert code == 2
    assert "--call: is not supported with --cost" in err


def test_folders_that_transformers_wrote_become_a_film(tmp_path: Path, command: Command) -> None:
    """As the Trainer leaves them, with the tokenizer in each; token ids need none."""
    ensure_torchvision_operators()
    transformers: Any = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"n_layer": 2, "n_embd": 16, "n_head": 2, "n_positions": 32, "vocab_size": 64}
    net = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, bos_token_id=1, eos_token_id=2))
    for step in (20, 100):
        net.save_pretrained(tmp_path / "out" / f"checkpoint-{step}")
        letter_tokenizer().save_pretrained(tmp_path / "out" / f"checkpoint-{step}")
        with torch.no_grad():
            net.transformer.h[0].mlp.c_fc.bias.fill_(9.0)  # the next one is nearly linear there
    np.savez(tmp_path / "ids.npz", x=np.random.default_rng(0).integers(3, 30, (64, 16)))
    (tmp_path / "book.txt").write_text("deep calls unto deep " * 60)
    for data in ("ids.npz", "book.txt"):
        folders = ("out/checkpoint-100", "out/checkpoint-20")
        own = ("--samples", "32", "--gauges", "affinity", "--sites", "activations")
        code, out, err = command("film", *folders, "--data", data, *own)
        assert code == 0, err
        assert "perplexity" in out
        history = fathometer.load(tmp_path / f"out-{Path(data).stem}-film.json")
        assert isinstance(history, History)
        assert history.steps == (20, 100)
        site, _ = history.signature
        assert history.signature[site].iloc[0] < 0.99 < history.signature[site].iloc[1]
        assert {s.provenance.model["name"] for s in history.soundings} == {"out"}
    shared = ("--data", "book.txt", "--samples", "64", "--length", "16")
    code, out, err = command("film", *folders, *shared, "--out", "film.json")
    assert code == 0, err
    assert "preset language: tokens as samples" in out
    code, _, err = command("measure", "hf:out/checkpoint-20", *shared, "--out", "one.json")
    assert code == 0, err
    found, expected = fathometer.load("film.json"), fathometer.load("one.json")
    assert isinstance(found, History)
    pd.testing.assert_frame_equal(found.soundings[0].records, expected.records)
    assert found.soundings[0].provenance.settings == expected.provenance.settings
