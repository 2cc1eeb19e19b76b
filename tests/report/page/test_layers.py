"""Pages of transformers with parts, before they are HTML."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pandas.testing import assert_frame_equal

pytest.importorskip("altair")
from fathometer.report import gauge_table, layer_table
from fathometer.report.page.items import Chart, Page
from fathometer.report.page.networks import comparison_page
from fathometer.report.page.sounding import sounding_page
from tests.report.figures.drawn import network, transformer
from tests.report.page.test_several import compiled


def charts(page: Page) -> list[Chart]:
    part = next(section for section in page.sections if section.title == "By layer")
    found = [item for item in part.items if isinstance(item, Chart)]
    for chart in found:
        assert compiled(chart.spec, dict(chart.data))["marks"]
        assert chart.spec["description"]
    return found


def test_a_transformer_is_shown_by_layer_first() -> None:
    sounding = transformer("mine")
    page = sounding_page(sounding)
    assert [section.title for section in page.sections] == ["By layer", "Sites", "Provenance"]
    assert page.lead.startswith("28 sites on book.txt")
    lines, cells = charts(page)[:2], charts(page)[2:]
    table = layer_table(sounding)
    shown = [chart.data["layers"][["series", "layer", "mean"]] for chart in lines]
    for gauge, rows in zip(("affinity", "r2_heldout"), shown, strict=True):
        assert_frame_equal(rows, table.loc[table["gauge"] == gauge, ["series", "layer", "mean"]])
    (decided,) = lines[1].data["trimmed"]["trimmed"]
    assert decided == sounding.mean("r2_trimmed")["h.1.mlp"]
    assert len(cells) == 7
    assert sum(len(chart.data["cells"]) for chart in cells) == len(gauge_table(sounding))
    assert "By layer" not in [section.title for section in sounding_page(network("a")).sections]


def test_several_transformers_have_a_chart_for_each_kind_and_distances_of_their_activations() -> None:
    named = {"a": transformer("a"), "b": transformer("b", 6, seed=1)}
    page = comparison_page(named)
    titles = [section.title for section in page.sections]
    assert titles == ["By layer", "Sites", "Distances", "Statistics", "Provenance"]
    found = charts(page)
    assert [chart.spec["title"]["text"] for chart in found] == ["activation", "attention", "mlp", "block"]
    for chart in found:
        assert chart.data["layers"].groupby("network")["layer"].max().to_dict() == {"a": 3, "b": 5}


def test_transformers_without_affinity_are_shown_by_layer() -> None:
    both = [transformer("a"), transformer("b", 6, seed=1)]
    parts = [one.at(site for site in one.sites if site.kind != "activation") for one in both]
    without = [replace(one, records=one.records.drop(columns="affinity")) for one in parts]
    page = comparison_page(without)
    assert [section.title for section in page.sections] == ["By layer", "Sites", "Provenance"]
    assert [chart.spec["title"]["text"] for chart in charts(page)] == ["attention", "mlp", "block"]
    page = comparison_page([both[0], without[1]])
    assert "Distances" in [section.title for section in page.sections]
    assert "No distances: b: 'affinity' was not measured" in str(page.sections[2])
