"""The page of several soundings, before it is HTML."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fathometer import InputError, Sounding
from fathometer.compare import best_predictors, cluster, distances, statistics
from fathometer.report.page.charts import category_colours
from fathometer.report.page.document import packed
from fathometer.report.page.items import Chart, Page, Paragraph, Section, Table, View
from fathometer.report.page.networks import comparison_page, facts_table, network_data
from fathometer.report.page.sounding import sounding_page
from fathometer.report.tables import families_of
from tests.compare.soundings import sounding

vl_convert = pytest.importorskip("vl_convert")
altair = pytest.importorskip("altair")


def networks(count: int = 8, seed: int = 0, **settings: Any) -> dict[str, Sounding]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(6, 12, count)
    return {
        f"net{i}": sounding(f"net{i}", rng.random((size, 3)), cka=rng.random((size, 3)), **settings)
        for i, size in enumerate(sizes)
    }


def facts_for(named: dict[str, Sounding]) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    count = len(named)
    return pd.DataFrame(
        {
            "family": ["even" if i % 2 == 0 else "odd" for i in range(count)],
            "accuracy": rng.uniform(60, 90, count),
            "parameters": rng.uniform(1e6, 1e8, count),
            "year": [2012 + i // 3 for i in range(count)],
        },
        index=pd.Index(list(named), name="network"),
    )


def section(page: Page, title: str) -> Section:
    return next(part for part in page.sections if part.title == title)


def only(part: Section, kind: type) -> Any:
    (found,) = [item for item in part.items if isinstance(item, kind)]
    return found


def compiled(spec: Any, data: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """The chart as Vega, with its data in it; what does not compile raises."""
    tables = {name: json.loads(frame.to_json(orient="records")) for name, frame in data.items()}
    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return vl_convert.vegalite_to_vega({**spec, "datasets": tables}, vl_version=version)


def unpacked(values: dict[str, str]) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.frombuffer(base64.b64decode(values["float32 base64"]), "<f4")


def test_the_sections_follow_what_is_known() -> None:
    named = networks()
    bare = comparison_page(named)
    titles = [part.title for part in bare.sections]
    assert titles == ["", "Distances", "Statistics", "Provenance"]
    full = comparison_page(named, facts_for(named), title="mine")
    titles = [part.title for part in full.sections]
    assert titles[3:5] == ["Over the years", "What predicts accuracy"]
    assert full.title == "mine"
    assert full.lead == "8 networks on photos, 2 families"
    assert bare.title == "8 networks compared"
    assert comparison_page(dict(list(named.items())[:2])).title == "net0 and net1"


def test_the_numbers_are_those_of_compare() -> None:
    named = networks()
    facts = facts_for(named)
    table = only(section(comparison_page(named, facts), "Statistics"), Table).frame.set_index("network")
    expected = statistics(named)
    assert list(table.index) == list(cluster(distances(named)).names)
    pd.testing.assert_frame_equal(table.loc[list(named), list(expected.columns)], expected)
    pd.testing.assert_frame_equal(table.loc[list(named), ["accuracy", "year"]], facts[["accuracy", "year"]])


def test_predictors_are_those_of_compare() -> None:
    named = networks()
    facts = facts_for(named)
    part = section(comparison_page(named, facts), "What predicts accuracy")
    best = best_predictors(statistics(named), facts, families_of(facts))
    pd.testing.assert_frame_equal(only(part, Table).frame, best)
    charts = [item for item in part.items if isinstance(item, Chart)]
    assert len(charts) == len(best) == 4
    for chart, row in zip(charts, best.to_dict("records"), strict=True):
        assert f"R² {row['r2']:.2f}" in chart.caption
        assert chart.half
    few = comparison_page(named, facts.assign(accuracy=[80.0, *[np.nan] * 7]))
    assert "No predictor" in only(section(few, "What predicts accuracy"), Paragraph).text


def test_every_chart_compiles() -> None:
    named = networks(14)
    page = comparison_page(named, facts_for(named))
    charts = [item for part in page.sections for item in part.items if isinstance(item, Chart)]
    assert len(charts) == 6
    for chart in charts:
        assert compiled(chart.spec, dict(chart.data))["marks"]
        assert chart.spec["description"]
    few = comparison_page(networks(3))
    assert compiled(only(section(few, "Distances"), Chart).spec, {})["marks"]


def test_what_cannot_be_compared_is_refused_unless_asked_for() -> None:
    named = {**networks(3), "other": networks(1, data="noise")["net0"]}
    with pytest.raises(InputError, match="these soundings differ"):
        comparison_page(named)
    with pytest.warns(UserWarning, match="compared although they differ: data"):
        page = comparison_page(named, allow_mismatch=True)
    assert (
        only(page.sections[0], Paragraph).text
        == "Compared although they differ: data: photos in most, but not in other (noise)."
    )
    with pytest.raises(InputError, match="at least two"):
        comparison_page(networks(1))


def test_a_site_without_a_value_leaves_the_overlay() -> None:
    named = networks(3)
    named["net3"] = sounding("net3", [0.1, np.nan, 0.3])
    page = comparison_page(named)
    assert only(section(page, "Distances"), Paragraph).text.startswith(
        "No distances: net3: 'affinity' has no finite"
    )
    assert [part.title for part in page.sections] == ["", "Distances", "Provenance"]
    record = only(page.sections[0], View).data["networks"][3]
    assert unpacked(record["mean"]["affinity"]) == pytest.approx([0.1, np.nan, 0.3], nan_ok=True)
    assert record["std"] == {}, "one batch has no spread"


def test_values_come_back_out_of_the_page() -> None:
    name, measured = next(iter(networks(1).items()))
    data = network_data(measured, name)
    for gauge in measured.gauges:
        assert unpacked(data["mean"][gauge]) == pytest.approx(measured.mean(gauge).to_numpy(), rel=1e-6)
        assert unpacked(data["std"][gauge]) == pytest.approx(measured.std(gauge).to_numpy(), rel=1e-6)
        assert unpacked(data["summary"][gauge]) == pytest.approx(measured.summary(gauge).to_list(), rel=1e-6)
    assert data["sites"]["site"] == [site.name for site in measured.sites]
    assert np.isnan(unpacked(packed([1e300, -np.inf, np.nan, 2.0]))).tolist() == [True, True, True, False]


def test_two_modes_are_those_of_the_distribution() -> None:
    values = np.r_[np.linspace(0.5, 0.54, 10), np.linspace(0.9, 0.94, 10)]
    (view,) = sounding_page(sounding("two", values, one=np.linspace(0, 1, 20))).sections[0].items
    assert isinstance(view, View)
    assert view.data["modes"]["affinity"] == pytest.approx([0.52, 0.92], abs=0.01)
    assert view.data["modes"]["one"] == []


def test_facts_have_a_row_for_each_network() -> None:
    named = networks(4)
    found = facts_table(named, facts_for(named).assign(depth=np.nan))
    assert found["family"].to_list() == ["even", "odd", "even", "odd"]
    assert list(found.columns) == ["family", "accuracy", "parameters", "year"], "depth is known of none"
    unknown = facts_table(named, facts_for(named).iloc[:1])
    assert families_of(unknown) == {"net0": "even"}
    assert list(unknown.index) == list(named)


@pytest.mark.parametrize("count", [1, 6, 7, 30])
def test_every_family_has_a_colour_of_its_own(count: int) -> None:
    found = category_colours([f"family {i}" for i in range(count)])
    assert len(set(found.values())) == count
    assert all(len(colour) == 7 and int(colour[1:], 16) >= 0 for colour in found.values())
