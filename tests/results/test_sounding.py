from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import nn

from fathometer import InputError, Sounding, measure
from fathometer.capture import Site
from fathometer.report import plot_overlay
from fathometer.results.sounding_file import load


@pytest.fixture(scope="module")
def sounding() -> Sounding:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 6), nn.Tanh())
    return measure(model, torch.randn(90, 4), samples=40, name="a <b> net")


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_what_is_saved_is_loaded(sounding: Sounding, tmp_path: Path, suffix: str) -> None:
    again = load(sounding.save(tmp_path / f"s{suffix}"))
    pd.testing.assert_frame_equal(again.records, sounding.records, check_exact=True)
    assert again.sites == sounding.sites
    assert again.provenance == sounding.provenance
    assert [path.name for path in tmp_path.iterdir()] == [f"s{suffix}"]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("fathometer.history", r"the file calls itself fathometer\.history$"),
        ("fathometer.a\nb", r"not a sounding; [^\n]* them$"),
        ([], r"not a sounding; .* them$"),
    ],
)
def test_a_file_of_another_kind_is_refused(schema: object, message: str, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps({"schema": schema, "version": 1}))
    with pytest.raises(InputError, match=message):
        load(tmp_path / "s.json")


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_numbers_that_are_not_finite_survive(tmp_path: Path, suffix: str) -> None:
    values = [float("inf"), float("-inf"), float("nan")]
    records = pd.DataFrame(
        {
            "site": ["/relu"] * 3,
            "batch": [0, 1, 2],
            "n": 4,
            "d": 2,
            "own": values,
            "cost_of_identity": float("inf"),
        }
    )
    odd = Sounding((Site("", "relu", 1, 0, own=False),), records)
    again = load(odd.save(tmp_path / f"s{suffix}"))
    pd.testing.assert_frame_equal(again.records, records, check_exact=True)


def test_other_files_and_endings_are_refused(sounding: Sounding, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    for content in ("", "[]", "{}", '{"schema": "other"}', "3", "null", "\x00"):
        path.write_text(content)
        with pytest.raises(InputError, match=r"not a sounding"):
            load(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="broken, or not a sounding"):
        load(path)
    with pytest.raises(InputError, match=r"ends in \.json or \.parquet"):
        load(tmp_path / "s.csv")
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "missing.json")
    with pytest.raises(InputError, match=r"ends in \.json or \.parquet"):
        sounding.save(tmp_path / "s.pkl")
    with pytest.raises(InputError, match="cannot be written"):
        sounding.save(tmp_path / "no" / "s.json")
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="not a sounding"):
        load(tmp_path / "other.parquet")


def test_newer_and_mangled_files(sounding: Sounding, tmp_path: Path) -> None:
    path = sounding.save(tmp_path / "s.json")
    good = json.loads(path.read_text())
    path.write_text(json.dumps({**good, "version": 2}))
    with pytest.raises(InputError, match="written by a newer fathometer"):
        load(path)
    for version in (0, -3, True, "1", None):
        path.write_text(json.dumps({**good, "version": version}))
        with pytest.raises(InputError, match="unknown format version"):
            load(path)
    columns: list[tuple[str, list[Any]]] = [
        ("site", [-1, 0, 0, 0]),
        ("n", [-1, 40, 40, 40]),
        ("d", [0.5, 6, 6, 6]),
        ("batch", [True, 0, 1, 1]),
        ("batch", [0, 0, 0, 0]),  # a site twice in a batch
        ("affinity", [1.5, 1, 1, 1]),
        ("cka", ["inf", 1, 1, 1]),
        ("affinity", [None, 1, 1, 1]),
        ("affinity", ["nan", 1, 1, 1]),
        ("affinity", ["1_0e-2", 1, 1, 1]),
        ("affinity", ["0.5", 1, 1, 1]),
        ("norm", ["inf", 1, 1, 1]),
        ("r2_heldout", ["-inf", 1, 1, 1]),
        ("cost_of_identity", ["-inf", 1, 1, 1]),
        ("stable_rank_x", [19, 1, 1, 1]),
    ]
    mangled: list[dict[str, Any]] = [
        {"sites": good["sites"][:1]},
        {"sites": [{**good["sites"][0], "order": "first"}, good["sites"][1]]},
        {"records": {**good["records"], "n": good["records"]["n"][:-1]}},
        {"records": {**good["records"], "affinity": [[1]] * 4}},
        *({"records": {**good["records"], name: values}} for name, values in columns),
        {"records": []},
        {"gauges": ["absent"]},
        {"provenance": {"model": "resnet"}},
        {"gauges": []},
        {"records": {**good["records"], "stable_rank_y": [4, 1, 1, 1], "d": [3, 6, 6, 6]}},
        {"sites": [{**good["sites"][0], "call": 0}, good["sites"][1]]},
        {"sites": [{**good["sites"][0], "order": 10**400}, good["sites"][1]]},
        {"provenance": {**good["provenance"], "seconds": 10**400}},
        {"provenance": {**good["provenance"], "seconds": -1}},
        {"sites": [good["sites"][0], good["sites"][0]]},
    ]
    for change in mangled:
        path.write_text(json.dumps({**good, **change}))
        with pytest.raises(InputError, match="broken, the parts do not fit"):
            load(path)
    for number in (float("nan"), float("inf")):  # not JSON
        path.write_text(json.dumps({**good, "provenance": {**good["provenance"], "data": {"count": number}}}))
        with pytest.raises(InputError, match="broken, or not a sounding"):
            load(path)


def test_half_a_character_becomes_a_question_mark(sounding: Sounding, tmp_path: Path) -> None:
    path = sounding.save(tmp_path / "s.json")
    good = json.loads(path.read_text())
    names = {"data": {"name": "caf\udce9 🙂"}}
    path.write_text(json.dumps({**good, "provenance": {**good["provenance"], **names}}))
    again = load(path)
    assert again.provenance.data["name"] == "caf? 🙂"
    assert load(again.save(path)).provenance == again.provenance


def test_a_value_beyond_its_range_is_not_saved(sounding: Sounding, tmp_path: Path) -> None:
    odd = Sounding(sounding.sites, sounding.records.assign(affinity=1.5), sounding.provenance)
    with pytest.raises(InputError, match=r"affinity: expected values from 0 to 1, got 1\.5"):
        odd.save(tmp_path / "s.json")
    rounded = Sounding(sounding.sites, sounding.records.assign(affinity=1 + 1e-12), sounding.provenance)
    assert load(rounded.save(tmp_path / "s.json")).signature.max() == 1 + 1e-12


def test_repr_and_html(sounding: Sounding) -> None:
    assert "2 sites, 2 batches, 16 gauges" in repr(sounding)
    html = sounding._repr_html_()
    assert "<b>" not in html
    assert "a &lt;b&gt; net" in html
    assert html.count("<tr>") == 3


def test_pictures(sounding: Sounding) -> None:
    (axes,) = sounding.plot().axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "3"]
    (line,) = axes.get_lines()[:1]
    assert list(line.get_ydata()) == pytest.approx(sounding.signature.to_list())  # type: ignore[arg-type]
    (legend,) = plot_overlay({"one": sounding, "two": sounding}, "cka").legends
    assert [text.get_text() for text in legend.get_texts()] == ["one", "two"]
