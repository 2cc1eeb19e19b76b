from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from PIL import Image

from fathometer import Site, Sounding, load

digits = importlib.import_module("examples.digits")  # a script, not a package: mypy would see it twice


def test_it_measures_prints_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    out = tmp_path / "new" / "demo"
    digits.main(["--out", str(out), "--seeds", "1", "--epochs", "1"])
    soundings = {(kind, when): load(out / f"{kind}-{when}-0.json") for kind, when in digits.COLUMNS}
    assert {path.name for path in out.glob("*.json")} == {f"{kind}-{when}-0.json" for kind, when in soundings}
    names = ["stem", *(f"block{i}.{place}" for i in range(1, 9) for place in ("inside", "end"))]
    for (kind, when), sounding in soundings.items():
        assert [site.name for site in sounding.sites] == names
        assert sounding.provenance.model["name"] == f"{kind} {when} training, seed 0"
        assert sounding.provenance.data["samples_measured"] == 6 * 128
        assert sounding.signature.between(0, 1).all()
    for kind in ("plain", "residual"):
        before, after = soundings[kind, "before"], soundings[kind, "after"]
        assert (before.signature - after.signature).abs().max() > 0.01
    with Image.open(out / "signatures.png") as picture:
        assert picture.width == 2160
    said = capsys.readouterr().out
    lowest = soundings["plain", "before"].signature["block1.inside"]
    assert re.search(rf"block1\.inside\W+{lowest:.2f}\b", said)
    assert said.count(", 1 of 1 ") + said.count(", 0 of 1 ") == 8
    assert "seeds: 0." in said


def test_both_kinds_start_with_the_same_weights() -> None:
    plain, residual = digits.network("plain", 3), digits.network("residual", 3)
    for one, other in zip(plain.parameters(), residual.parameters(), strict=True):
        assert torch.equal(one, other)
    x = torch.rand(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    assert not torch.allclose(plain.eval()(x), residual.eval()(x))


def test_no_image_is_both_trained_on_and_held_out() -> None:
    training, held_out = digits.digits(0)
    assert (len(training), len(held_out)) == (1000, 797)
    assert not torch.equal(training.tensors[0], digits.digits(1)[0].tensors[0])
    both = torch.cat((training.tensors[0], held_out.tensors[0])).flatten(1)
    assert len(both.unique(dim=0)) == 1797


def trials_of(plain: list[list[float]], residual: list[list[float]]) -> Any:
    """Made-up scores of five sites, before and after training."""
    trials = {}
    for (kind, when), scores in zip(digits.COLUMNS, (*plain, *residual), strict=True):
        sites = tuple(Site(str(i), "relu", 1, i, True) for i in range(len(scores)))
        rows = {"site": [site.name for site in sites], "batch": 0, "n": 9, "d": 4, "affinity": scores}
        rows["stable_rank_x"] = 2.0
        trials[kind, when] = [(Sounding(sites, pd.DataFrame(rows)), 0.5)]
    return trials


def verdicts(trials: Any) -> list[str]:
    cells = digits.findings(trials).columns[0].cells
    return [str(cell).removeprefix("[green]").removeprefix("[red]") for cell in cells if cell]


def test_verdicts_follow_the_numbers() -> None:
    as_in_the_paper = trials_of(
        plain=[[0.7, 0.8, 0.95, 0.98, 0.99], [0.6, 0.7, 0.5, 0.6, 0.7]],
        residual=[[0.7, 0.7, 0.8, 0.7, 0.8], [0.6, 0.6, 0.96, 0.62, 0.98]],
    )
    assert verdicts(as_in_the_paper) == ["yes[/], 1 of 1"] * 8
    the_contrary = trials_of(
        plain=[[0.8, 0.7, 0.6, 0.5, 0.4], [0.6, 0.7, 0.8, 0.9, 0.95]],
        residual=[[0.7, 0.7, 0.8, 0.7, 0.8], [0.6, 0.7, 0.6, 0.7, 0.61]],
    )
    assert verdicts(the_contrary) == ["no[/], 0 of 1"] * 8
