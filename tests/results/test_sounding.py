from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import nn

from fathometer import FathometerError, InputError, Sounding, load, load_history, measure
from fathometer.capture import Site
from fathometer.report import plot_overlay


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
    odd = Sounding((Site("", "relu", 1, 0, is_module=False),), records)
    again = load(odd.save(tmp_path / f"s{suffix}"))
    pd.testing.assert_frame_equal(again.records, odd.records, check_exact=True)
    pd.testing.assert_frame_equal(odd.records[list(records)], records, check_exact=True)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"3", b"null", b"\x00", b"\xff\xfe", b"[" * 100_000, b'{"a": NaN}', b'{"schema": "other"}'],
)
def test_files_of_another_kind_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_bytes(content)
    with pytest.raises(InputError, match=r"s\.json: .*not a (sounding|result)"):
        load(tmp_path / "s.json")
    with pytest.raises(InputError, match=r"s\.json: .*not a history"):
        load_history(tmp_path / "s.json")


def test_other_schemas_endings_and_places_are_refused(sounding: Sounding, tmp_path: Path) -> None:
    path = sounding.save(tmp_path / "s.json")
    with pytest.raises(InputError, match=r"not a history; .* the file calls itself fathometer\.sounding$"):
        load_history(path)
    for name in ("s.csv", "missing.json"):
        with pytest.raises(InputError, match=r"ends in \.json or \.parquet|no such file"):
            load(tmp_path / name)
    with pytest.raises(InputError, match=r"ends in \.json or \.parquet"):
        sounding.save(tmp_path / "s.pkl")
    with pytest.raises(FathometerError, match="cannot be written"):
        sounding.save(tmp_path / "no" / "s.json")
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="not a sounding"):
        load(tmp_path / "other.parquet")


@pytest.mark.parametrize("version", [2, 0, True, "1", None])
def test_other_versions_are_refused(version: object, sounding: Sounding, tmp_path: Path) -> None:
    path = sounding.save(tmp_path / "s.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": version}))
    with pytest.raises(InputError, match=r"written by a newer fathometer|unknown format version"):
        load(path)


def _with_column(name: str, *values: object) -> Any:
    return lambda good: {"records": {**good["records"], name: list(values)}}


def _with_site(**change: object) -> Any:
    return lambda good: {"sites": [{**good["sites"][0], **change}, good["sites"][1]]}


def _with_seconds(seconds: int) -> Any:
    return lambda good: {"provenance": {**good["provenance"], "seconds": seconds}}


@pytest.mark.parametrize(
    "change",
    [
        _with_column("site", -1, 0, 0, 0),
        _with_column("n", -1, 40, 40, 40),
        _with_column("n", 40, 40, 40),
        _with_column("d", 0.5, 6, 6, 6),
        _with_column("batch", 0, 0, 0, 0),  # a site twice in a batch
        _with_column("affinity", 1.5, 1, 1, 1),
        _with_column("affinity", None, 1, 1, 1),
        _with_column("affinity", "0.5", 1, 1, 1),
        _with_column("cost_of_identity", "-inf", 1, 1, 1),
        _with_column("stable_rank_x", 19, 1, 1, 1),
        _with_site(order="first"),
        _with_site(call=0),
        _with_site(order=10**400),
        _with_seconds(10**400),
        _with_seconds(-1),
        lambda good: {"sites": [good["sites"][0]] * 2},
        lambda good: {"sites": good["sites"][:1]},
        lambda _: {"records": []},
        lambda _: {"gauges": []},
        lambda _: {"gauges": ["absent"]},
        lambda _: {"provenance": {"model": "resnet"}},
    ],
)
def test_parts_that_do_not_fit_are_refused(change: Any, sounding: Sounding, tmp_path: Path) -> None:
    path = sounding.save(tmp_path / "s.json")
    good = json.loads(path.read_text())
    path.write_text(json.dumps({**good, **change(good)}))
    with pytest.raises(InputError, match=r"s\.json: broken, the parts do not fit"):
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
    assert f"2 sites, 2 batches, {len(sounding.gauges)} gauges" in repr(sounding)
    html = sounding._repr_html_()
    assert "<b>" not in html
    assert "a &lt;b&gt; net" in html
    assert html.count("<tr>") == 3


def test_pictures(sounding: Sounding) -> None:
    (axes,) = sounding.plot().axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "3"]
    (line,) = axes.get_lines()[:1]
    assert list(line.get_ydata()) == pytest.approx(sounding.signature.to_list())  # type: ignore[arg-type]
    (legend,) = plot_overlay({"one": sounding, "two": sounding}, "cka_debiased").legends
    assert [text.get_text() for text in legend.get_texts()] == ["one", "two"]
