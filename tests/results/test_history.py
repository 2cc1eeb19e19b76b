from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from fathometer import InputError, Sounding, load_history, measure
from fathometer.capture import Site
from fathometer.results.history import Cost, History, metrics_frame
from fathometer.results.provenance import Provenance

LOSSES = {"loss": [(0, 3.0), (5, 2.0), (9, float("inf"))], "accuracy": [(9, 0.5)]}


@pytest.fixture(scope="module")
def history() -> History:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 6), nn.Tanh())
    soundings = []
    for _ in range(3):
        soundings.append(measure(model, torch.ones(1, 4) + torch.randn(60, 4), samples=30, name="a <b> net"))
        with torch.no_grad():
            next(model.parameters()).mul_(2)
    cost = Cost(1.5, 60.0, 0.05)
    return History((0, 5, 9), tuple(soundings), metrics_frame(LOSSES), cost, ((7, "not finite"),))


def test_tables_over_time(history: History) -> None:
    table = history.table("cka_debiased")
    assert (table.index.name, table.columns.name) == ("step", "site")
    assert list(table.index) == [0, 5, 9]
    assert list(table.columns) == ["1", "3"]
    assert table.loc[5, "3"] == history.soundings[1].mean("cka_debiased")["3"]
    pd.testing.assert_frame_equal(history.signature, history.table("affinity"))
    change = history.change()
    assert list(change.columns) == ["first", "last", "change"]
    expected = history.signature.loc[9] - history.signature.loc[0]
    assert list(change["change"]) == list(expected)
    assert change["change"].abs().max() > 0.01
    with pytest.raises(InputError, match="'other' was not measured"):
        history.table("other")
    assert history.metric("loss").to_dict() == {0: 3.0, 5: 2.0, 9: float("inf")}
    with pytest.raises(InputError, match=r"'rate' was not logged; .*: loss, accuracy"):
        history.metric("rate")


def test_what_is_saved_is_loaded(history: History, tmp_path: Path) -> None:
    again = load_history(history.save(tmp_path / "h.json"))
    assert again.steps == history.steps
    assert again.cost == history.cost
    assert again.missed == history.missed
    pd.testing.assert_frame_equal(again.metrics, history.metrics, check_exact=True)
    for one, other in zip(again.soundings, history.soundings, strict=True):
        pd.testing.assert_frame_equal(one.records, other.records, check_exact=True)
        assert one.sites == other.sites
        assert one.provenance == other.provenance
    assert len({sounding.provenance.model["checksum"] for sounding in again.soundings}) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["h.json"]
    bare = History((np.int64(3),), history.soundings[:1])  # type: ignore[arg-type]
    again = load_history(bare.save(tmp_path / "bare.json"))
    assert (again.steps, again.cost, again.missed, again.metrics.empty) == ((3,), Cost(), (), True)
    assert again.soundings[0].provenance == bare.soundings[0].provenance


def many(steps: int, sites: int, gauges: int) -> History:
    rng = np.random.default_rng(0)
    found = tuple(Site(f"layers.{i}.activation", "relu", 1, i, is_module=True) for i in range(sites))
    soundings = []
    for _ in range(steps):
        columns = {f"gauge_{i}": rng.random(sites) for i in range(gauges)}
        keys = {"site": [site.name for site in found], "batch": 0, "n": 512, "d": 64}
        facts = Provenance(
            model={"name": "net", "sha256": rng.bytes(32).hex()}, settings={"sites": "x" * 2000}
        )
        soundings.append(Sounding(found, pd.DataFrame({**keys, **columns}), facts))
    return History(tuple(range(steps)), tuple(soundings))


def test_shared_provenance_is_saved_once(tmp_path: Path) -> None:
    history = many(40, 50, 10)
    path = history.save(tmp_path / "h.json")
    text = path.read_text()
    numbers = sum(
        len(repr(float(v))) + 1 for s in history.soundings for v in s.records.iloc[:, 4:].to_numpy().flat
    )
    assert len(text) < numbers + 40 * 300 + 10_000
    assert text.count("layers.7.activation") == 1
    again = load_history(path)
    pd.testing.assert_frame_equal(again.table("gauge_3"), history.table("gauge_3"), check_exact=True)


def test_endings_and_newer_versions_are_refused(history: History, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ends in \.json"):
        history.save(tmp_path / "h.pkl")
    path = history.save(tmp_path / "h.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 2}))
    with pytest.raises(InputError, match="written by a newer fathometer"):
        load_history(path)


@pytest.mark.parametrize(
    "change",
    [
        {"shared": {}},
        {"shared": []},
        {"soundings": []},
        {"cost": {"seconds": -1.0}},
        {"cost": {"total": "nan"}},
        {"metrics": []},
        {"metrics": {"loss": {"step": [1, 2], "value": [1.0]}}},
        {"metrics": {"loss": {"step": [1.5], "value": [1.0]}}},
        {"metrics": {"loss": {"step": [1], "value": ["0.5"]}}},
        {"missed": [[1]]},
        lambda first, second: {"soundings": [second, first]},
        lambda first, _: {"soundings": [first, first]},
        lambda first, second: {"soundings": [{**first, "step": "0"}, second]},
        lambda first, second: {"soundings": [first, {**second, "step": 10**400}]},
        lambda first, second: {"soundings": [{**first, "records": {}}, second]},
        lambda first, second: {"soundings": [{**first, "gauges": ["affinity"]}, second]},
    ],
)
def test_parts_of_a_file_that_do_not_fit_are_refused(change: Any, history: History, tmp_path: Path) -> None:
    path = history.save(tmp_path / "h.json")
    good = json.loads(path.read_text())
    changed = change(*good["soundings"][:2]) if callable(change) else change
    path.write_text(json.dumps({**good, **changed}))
    with pytest.raises(InputError, match=r"h\.json: broken, the parts do not fit"):
        load_history(path)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (lambda one, _: ((0, 1), (one,)), "got 2 steps and 1 soundings"),
        (lambda *_: ((), ()), "at least one, got 0 steps"),
        (lambda *two: ((4, 4), two), r"increasing steps, got \[4, 4\]"),
        (lambda *two: ((0.5, 1.5), two), "steps: expected a whole number"),
        (
            lambda one, other: ((0, 1), (one, replace(other, sites=other.sites[:1]))),
            "sites or gauges of step 1",
        ),
        (
            lambda one, other: (
                (0, 1),
                (one, replace(other, records=other.records.drop(columns="cka_debiased"))),
            ),
            "sites or gauges of step 1",
        ),
        (lambda one, _: ((0,), (one,), pd.DataFrame({"a": [1]})), "columns step, name, value, got a"),
    ],
)
def test_parts_that_do_not_belong_together(history: History, parts: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        History(*parts(*history.soundings[:2]))


def test_repr_and_html(history: History) -> None:
    assert "3 soundings, steps 0 to 9, 1 missed, 2 sites" in repr(history)
    html = history._repr_html_()
    assert "<b>" not in html
    assert html.count("<tr>") == 3
    assert f"<td>{history.change()['change']['3']:+.3f}</td>" in html
    assert "and 20 more sites" in many(2, 80, 1)._repr_html_()


def test_the_picture(history: History) -> None:
    heat, lines, _ = history.plot().axes
    mesh: Any = heat.collections[0]
    np.testing.assert_allclose(np.asarray(mesh.get_array()), history.signature.to_numpy().T)
    assert heat.get_xlim() == (0, 9)
    assert sorted({float(x) for x in np.asarray(mesh.get_coordinates())[..., 0].flat}) == [-2.5, 2.5, 7, 11]
    assert heat.get_ylim()[0] > heat.get_ylim()[1]  # the first site on top
    drawn = [np.asarray(line.get_xdata()) for line in lines.get_lines()]
    np.testing.assert_array_equal(drawn, history.signature.loc[[0, 9]])
    one = History((4,), history.soundings[:1]).plot("stable_rank_x").axes
    assert one[0].get_xlim() == (3.5, 4.5)
    assert one[2].get_ylabel() == "stable rank x"
    assert history.plot(columns=1).get_figwidth() == 3.5
    with pytest.raises(InputError, match="columns: expected 1"):
        history.plot(columns=3)  # type: ignore[arg-type]
