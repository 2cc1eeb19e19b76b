"""Files that version 0.1.0 wrote still load, with their values unchanged."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from fathometer import History, InputError, atlas, load, load_history, measure
from fathometer.leaky import Design, Phase, Recipe, Teacher, load_sweep, sweep

OLD = Path(__file__).parent / "old_files"
DESIGN = Design(2.0, 3, 5, teacher=Teacher((4, 2, 4)), samples=12, test_samples=4)
RECIPE = Recipe((Phase("adam", 8),))


@pytest.mark.parametrize(
    "name", ["sounding.json", "path.json", "survey/small-noise-6602fda4f3e22c16b6fed6fa.json"]
)
def test_a_sounding(name: str) -> None:
    written = json.loads((OLD / name).read_text("utf-8"))
    sounding = load(OLD / name)
    assert [site.module for site in sounding.sites] == [site["module"] for site in written["sites"]]
    for column in ("batch", "n", "d", *written["gauges"]):
        np.testing.assert_array_equal(sounding.records[column], np.array(written["records"][column], float))
    assert sounding.provenance.model["sha256"] == written["provenance"]["model"]["sha256"]
    assert sounding.provenance.settings["samples"] == written["provenance"]["settings"]["samples"]


def test_a_history() -> None:
    history = load_history(OLD / "history.json")
    assert history.steps == (10, 20)
    assert history.missed == ((15, "busy"),)
    assert history.metrics["value"].tolist() == [0.5, 0.001, 0.25]
    assert [len(sounding.records) for sounding in history.soundings] == [4, 4]
    written = json.loads((OLD / "history.json").read_text("utf-8"))["cost"]
    assert (history.cost.seconds, history.cost.total) == (written["seconds"], written["in_all"])


def test_a_folder_of_a_survey() -> None:
    table = atlas(OLD / "survey")
    assert len(table) == 1


def test_a_leaky_run() -> None:
    (run,) = load_sweep(OLD / "leaky").runs
    assert run.design == DESIGN
    assert len(run.history) >= 1
    assert run.task.x.shape == (12, 4)


def test_an_interrupted_leaky_run_is_resumed(tmp_path: Path) -> None:
    shutil.copytree(OLD / "leaky-interrupted", tmp_path / "run")
    (resumed,) = sweep(DESIGN, RECIPE, threads=1, out=tmp_path / "run", resume=True).runs
    (whole,) = load_sweep(OLD / "leaky").runs
    for name, value in whole.net.state_dict().items():
        torch.testing.assert_close(resumed.net.state_dict()[name], value)


def test_a_journal_is_resumed_or_refused(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 5), nn.Tanh())
    x = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    options: Any = {"samples": 20, "batch_size": 20, "gauges": "affinity,norm", "name": "net"}
    journal = shutil.copy(OLD / "sounding.journal", tmp_path)
    whole = measure(net, x, **options)
    with suppress(InputError):  # what a journal must agree in may grow; it is then started again
        resumed = measure(net, x, journal=journal, **options)
        pd.testing.assert_frame_equal(resumed.records, whole.records, atol=1e-9, rtol=1e-9)


def test_one_function_loads_every_kind(tmp_path: Path) -> None:
    pd.testing.assert_frame_equal(load(OLD / "sounding.parquet").records, load(OLD / "sounding.json").records)
    assert isinstance(load(str(OLD / "history.json")), History)
    assert len(load(OLD / "leaky").runs) == 1
    url = "memory://one-load/history.json"
    with fsspec.open(url, "wb") as file:
        file.write((OLD / "history.json").read_bytes())
    assert load(url).steps == (10, 20)
    (tmp_path / "other.json").write_text('{"schema": "other"}')
    for name, message in (("other.json", "not a sounding"), ("none.json", "no such file")):
        with pytest.raises(InputError, match=message):
            load(tmp_path / name)
