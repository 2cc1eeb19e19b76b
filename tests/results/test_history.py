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

from fathometer import InputError, Sounding, measure
from fathometer.capture import Site
from fathometer.results.history import Cost, History, metrics_frame
from fathometer.results.history_file import load as load_history
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
    table = history.table("cka")
    assert (table.index.name, table.columns.name) == ("step", "site")
    assert list(table.index) == [0, 5, 9]
    assert list(table.columns) == ["1", "3"]
    assert table.loc[5, "3"] == history.soundings[1].mean("cka")["3"]
    pd.testing.assert_frame_equal(history.signature, history.table("affinity"))
    change = history.change()
    assert list(change.columns) == ["first", "last", "change"]
    expected = history.signature.loc[9] - history.signature.loc[0]
    assert list(change["change"]) == list(expected)
    assert change["change"].abs().max() > 0.01
    with pytest.raises(InputError, match="'other' was not measured here"):
        history.table("other")
    assert history.metric("loss").to_dict() == {0: 3.0, 5: 2.0, 9: float("inf")}
    with pytest.raises(InputError, match="'rate' was not logged, but loss, accuracy"):
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
    assert len({sounding.provenance.model["sha256"] for sounding in again.soundings}) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["h.json"]
    bare = History((3,), history.soundings[:1])
    again = load_history(bare.save(tmp_path / "bare.json"))
    assert (again.steps, again.cost, again.missed, again.metrics.empty) == ((3,), Cost(), (), True)
    assert again.soundings[0].provenance == bare.soundings[0].provenance


def many(steps: int, sites: int, gauges: int) -> History:
    rng = np.random.default_rng(0)
    places = tuple(Site(f"layers.{i}.activation", "relu", 1, i, own=True) for i in range(sites))
    soundings = []
    for _ in range(steps):
        columns = {f"gauge_{i}": rng.random(sites) for i in range(gauges)}
        keys = {"site": [site.name for site in places], "batch": 0, "n": 512, "d": 64}
        facts = Provenance(
            model={"name": "net", "sha256": rng.bytes(32).hex()}, settings={"sites": "x" * 2000}
        )
        soundings.append(Sounding(places, pd.DataFrame({**keys, **columns}), facts))
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


def test_files_that_are_not_ours(history: History, tmp_path: Path) -> None:
    path = tmp_path / "h.json"
    for content in ("", "[]", "{}", '{"schema": "other"}', "3", "null", "\x00", "[" * 100_000):
        path.write_text(content)
        with pytest.raises(InputError, match="not a history"):
            load_history(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="broken, or not a history"):
        load_history(path)
    history.soundings[0].save(path)
    with pytest.raises(InputError, match="not a history"):
        load_history(path)
    with pytest.raises(InputError, match=r"ends in \.json"):
        load_history(tmp_path / "h.parquet")
    with pytest.raises(InputError, match=r"ends in \.json"):
        history.save(tmp_path / "h.pkl")
    with pytest.raises(InputError, match="cannot be read"):
        load_history(tmp_path / "missing.json")
    with pytest.raises(InputError, match="cannot be written"):
        history.save(tmp_path / "no" / "h.json")


def test_newer_and_mangled_files(history: History, tmp_path: Path) -> None:
    path = history.save(tmp_path / "h.json")
    good = json.loads(path.read_text())
    path.write_text(json.dumps({**good, "version": 2}))
    with pytest.raises(InputError, match="written by a newer fathometer"):
        load_history(path)
    first, *others = good["soundings"]
    mangled: list[dict[str, Any]] = [
        {"shared": {}},
        {"shared": []},
        {"soundings": []},
        {"soundings": 3},
        {"soundings": [others[0], first]},
        {"soundings": [first, first]},
        {"soundings": [{**first, "step": "0"}, *others]},
        {"soundings": [{**first, "records": {}}, *others]},
        {"soundings": [{**first, "gauges": ["affinity"]}, *others]},
        {"soundings": [{**first, "provenance": 1}, *others]},
        {"cost": {}},
        {"cost": {"seconds": [1], "in_all": 1, "bound": None}},
        {"metrics": {"loss": {"step": [1, 2], "value": [1.0]}}},
        {"metrics": {"loss": {"step": [1.5], "value": [1.0]}}},
        {"metrics": {"loss": {"step": [1], "value": [None]}}},
        {"metrics": []},
        *(
            {"metrics": {"loss": {"step": [1], "value": [text]}}}
            for text in ("1_0e-2", "0.5", " inf", "Infinity")
        ),
        *(
            {"cost": {**good["cost"], **cost}}
            for cost in ({"seconds": -1.0}, {"in_all": "nan"}, {"bound": "inf"})
        ),
        {"missed": [[1]]},
    ]
    for change in mangled:
        path.write_text(json.dumps({**good, **change}))
        with pytest.raises(InputError, match=r"h\.json: broken, the parts do not fit"):
            load_history(path)
    path.write_text(json.dumps({**good, "missed": [[1, float("nan")]]}))  # not JSON
    with pytest.raises(InputError, match="broken, or not a history"):
        load_history(path)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (lambda one, _: ((0, 1), (one,)), "got 2 steps and 1 soundings"),
        (lambda *_: ((), ()), "at least one, got 0 steps"),
        (lambda *two: ((4, 4), two), r"increasing steps, got \[4, 4\]"),
        (lambda *two: ((0.5, 1.5), two), "whole numbers"),
        (
            lambda one, other: ((0, 1), (one, replace(other, sites=other.sites[:1]))),
            "sites or gauges of step 1",
        ),
        (
            lambda one, other: ((0, 1), (one, replace(other, records=other.records.drop(columns="cka")))),
            "sites or gauges of step 1",
        ),
        (lambda one, _: ((0,), (one,), pd.DataFrame({"a": [1]})), "columns step, name, value, got a"),
        (
            lambda one, _: ((0,), (one,), pd.DataFrame({"step": [0], "name": [None], "value": [1.0]})),
            "text as names of metrics, got None",
        ),
    ],
)
def test_parts_that_do_not_belong_together(history: History, parts: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        History(*parts(*history.soundings[:2]))


def test_steps_of_numpy_are_saved(history: History, tmp_path: Path) -> None:
    steps: Any = (np.int64(0), np.int64(4))
    missed: Any = ((np.int64(3), "why"),)
    made = History(steps, history.soundings[:2], missed=missed)
    again = load_history(made.save(tmp_path / "h.json"))
    assert (again.steps, again.missed) == ((0, 4), ((3, "why"),))


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
