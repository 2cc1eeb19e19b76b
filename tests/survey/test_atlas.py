from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import fathometer
from fathometer import InputError, load
from fathometer.report.page.networks import facts_table
from fathometer.survey import run_survey
from tests.survey.making import plan


def test_one_row_for_each_sounding_or_site(tmp_path: Path) -> None:
    facts = '[facts."tests.survey.nets:other"]\naccuracy = 71.5\nyear = 2020\n'
    run_survey(plan("small", "other", change=("[families", f"{facts}[families")), tmp_path)
    table = fathometer.atlas(tmp_path)
    assert len(table) == 2
    row = table[table["model"] == "tests.survey.nets:other"].iloc[0]
    expected = ("Tiny", "none", "noise", 16, 3, 71.5, 2020, 2, 2)
    names = ["family", "weights", "data", "samples", "batches", "accuracy", "year", "depth", "sites"]
    assert tuple(row[names]) == expected
    sounding = load(tmp_path / row["file"])
    assert row["affinity"] == pytest.approx(sounding.signature.mean())
    assert row["affinity_spread"] == pytest.approx(sounding.summary()["spread"])
    small = table[table["model"] == "tests.survey.nets:small"]
    assert small[["accuracy", "gflops", "year"]].isna().all(axis=None)
    assert all(kind.kind in "if" for kind in table[["seed", "samples", "accuracy", "gflops", "depth"]].dtypes)
    sites = fathometer.atlas(tmp_path, per="site")
    assert len(sites) == 4
    assert sites[sites["model"] == row["model"]]["affinity"].to_list() == sounding.signature.to_list()


def test_the_measured_accuracy_is_a_column_of_its_own(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(60, 4, generator=generator), torch.randint(3, (60,), generator=generator)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    labelled = fathometer.measure(net, [(x, y)], samples=30, name="labelled")
    labelled.save(tmp_path / "a.json")
    fathometer.measure(net, x, samples=30, name="plain").save(tmp_path / "b.json")
    table = fathometer.atlas(tmp_path).set_index("model")
    with torch.no_grad():
        expected = (net(x).argmax(1) == y).double().mean().item()
    assert table.loc["labelled", "measured_accuracy"] == pytest.approx(expected)
    assert table[["measured_accuracy", "accuracy"]].isna().to_numpy().tolist() == [
        [False, True],
        [True, True],
    ]
    known = facts_table({"labelled": labelled, "copy": labelled})
    assert known["measured_accuracy"].to_list() == pytest.approx([expected, expected])
    plain = load(tmp_path / "b.json")
    assert "measured_accuracy" not in facts_table({"plain": plain})


def test_names_come_from_the_plan(tmp_path: Path) -> None:
    change = ("[settings]", "[settings.quick]\nsamples = 10\n[settings.usual]")
    run_survey(plan("small", change=change), tmp_path)
    (tmp_path / "stray.json").write_text("{}")
    with pytest.warns(UserWarning, match=r"skipped 1 file: .*stray\.json"):
        table = fathometer.atlas(tmp_path)
    assert table[["data", "settings"]].to_numpy().tolist() == [["noise", "quick"], ["noise", "usual"]]
    assert table["model"].nunique() == 1  # two soundings of one network
    with pytest.raises(InputError, match="stray"):
        fathometer.atlas(tmp_path, strict=True)


def test_seeds_are_in_order(tmp_path: Path) -> None:
    seeds = [10, 2, 0, 33, 1]
    run_survey(plan("small", "other", change=("[data]", f"seeds = {seeds}\n[data]")), tmp_path)
    table = fathometer.atlas(tmp_path)
    assert table["seed"].to_list() == 2 * sorted(seeds)
    assert table["model"].nunique() == 2
    assert table["model"].is_monotonic_increasing


def test_empty_broken_and_missing_folders(tmp_path: Path) -> None:
    assert len(fathometer.atlas(tmp_path)) == 0
    assert "model" in fathometer.atlas(tmp_path)
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(InputError, match=r"got none: .*a\.json: broken"):
        fathometer.atlas(tmp_path)
    with pytest.raises(InputError, match="nofolder: expected a folder of soundings, got none"):
        fathometer.atlas(tmp_path / "nofolder")
