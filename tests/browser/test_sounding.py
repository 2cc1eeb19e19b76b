"""The page of one sounding, in Chromium."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect

from fathometer.capture.sites import Site
from fathometer.report.numbers import number
from fathometer.report.page.items import Page
from fathometer.report.page.sounding import sounding_page
from fathometer.results.provenance import Provenance
from fathometer.results.sounding import Sounding
from tests.browser.conftest import OpenPage

SIGNATURE = "[data-part=signature]"
POINTS = f"{SIGNATURE} svg.marks path[aria-roledescription=point]"


def sounding(sites: int = 12, batches: int = 5, name: str = "net", gauges: int = 3) -> Sounding:
    rng = np.random.default_rng(0)
    found = tuple(
        Site(f"layer{i // 4}.{i % 4}.act", ("relu", "gelu")[i % 2], 1, i, True) for i in range(sites)
    )
    names = ["affinity", "cka", "stable_rank_x", *(f"gauge_{k}" for k in range(gauges - 3))][:gauges]
    keys = pd.DataFrame(
        [{"site": site.name, "batch": b, "n": 64, "d": 8} for b in range(batches) for site in found]
    )
    rows = keys.join(pd.DataFrame(rng.random((len(keys), gauges)), columns=names))
    facts = Provenance(model={"name": name}, data={"name": "noise"}, settings={"samples": 64})
    return Sounding(found, rows, facts)


def test_rows_can_be_filtered_and_sorted(open_page: OpenPage) -> None:
    measured = sounding()
    tab = open_page(sounding_page(measured))
    rows = tab.locator("tbody tr:visible")
    assert rows.count() == 12
    tab.get_by_label("Filter rows").fill("gelu layer1")
    assert rows.count() == 2
    assert "2 of 12" in tab.get_by_role("status").inner_text()
    tab.get_by_label("Filter rows").fill("")
    tab.get_by_role("button", name="affinity score").click()
    first = rows.first.inner_text()
    assert str(measured.signature.idxmin()) in first
    tab.get_by_role("button", name="affinity score").click()
    assert str(measured.signature.idxmax()) in rows.first.inner_text()


def test_the_keyboard_reaches_everything(open_page: OpenPage) -> None:
    tab = open_page(sounding_page(sounding()))
    strip = tab.get_by_role("listbox")
    strip.focus()
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    assert tab.locator(".details strong").inner_text() == "layer0.2.act"
    expect(strip.get_by_role("option", selected=True)).to_have_attribute(
        "aria-label", re.compile("^layer0.2")
    )
    tab.keyboard.press("End")
    assert tab.locator(".details strong").inner_text() == "layer2.3.act"
    reached = set()
    for _ in range(40):
        tab.keyboard.press("Tab")
        reached.add(tab.evaluate("document.activeElement.tagName"))
    assert {"SELECT", "BUTTON", "INPUT"} <= reached
    tab.locator("tbody tr").nth(3).focus()
    tab.keyboard.press("Enter")
    assert tab.locator(".details strong").inner_text() == "layer0.3.act"
    assert tab.locator("tr[aria-current=true]").get_attribute("data-site") == "3"


@pytest.mark.parametrize(
    ("scheme", "accent", "other"), [("light", "#0b6fa4", "#5fb4e5"), ("dark", "#5fb4e5", "#0b6fa4")]
)
def test_page_and_charts_follow_the_theme(open_page: OpenPage, scheme: Any, accent: str, other: str) -> None:
    tab = open_page(sounding_page(sounding()), color_scheme=scheme)
    bars = tab.locator("[data-part=distribution] .mark-rect path[fill]")

    def dark() -> bool:
        colours = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        return int(colours.removeprefix("rgb(").split(",")[0]) < 60

    assert dark() == (scheme == "dark")
    expect(bars.first).to_have_attribute("fill", accent)
    tab.locator("#theme").click()
    assert dark() != (scheme == "dark")
    expect(bars.first).to_have_attribute("fill", other)
    assert tab.locator("#theme").get_attribute("aria-pressed") == str(scheme == "light").lower()
    assert tab.locator("svg [stroke^=var], svg [fill^=var]").count() == 0


def test_gauges_without_values_are_left_out_and_a_report_without_values_says_so(open_page: OpenPage) -> None:
    records = sounding().records.assign(affinity=np.nan)
    tab = open_page(sounding_page(replace(sounding(), records=records)))
    offered = tab.get_by_label("Gauge").locator("option")
    assert "affinity" not in offered.all_inner_texts()
    only = records[["site", "batch", "n", "d", "affinity"]]
    tab = open_page(sounding_page(replace(sounding(), records=only)))
    expect(tab.locator(SIGNATURE)).to_contain_text("has no value at any site")
    assert "Infinity" not in tab.locator("main").inner_text()
    expect(tab.locator("[data-part=batches] svg")).to_have_count(0)


def test_a_gauge_may_have_any_name(open_page: OpenPage) -> None:
    measured = sounding()
    names = {"affinity": "title", "cka": "features", "stable_rank_x": "pairs"}
    tab = open_page(sounding_page(replace(measured, records=measured.records.rename(columns=names))))
    tab.wait_for_selector(f"{SIGNATURE}[data-ready=true]")
    tab.locator(POINTS).nth(2).hover(force=True)
    tip = tab.locator(".tip")
    tip.wait_for(state="visible")
    assert tip.locator("strong").inner_text() == "layer0.2.act"
    assert tip.locator("dt").all_inner_texts().count("features") == 2
    for gauge in measured.gauges:
        assert f"{measured.mean(gauge).iloc[2]:.3f}" in tip.inner_text()


def test_the_page_writes_numbers_as_python_does(open_page: OpenPage) -> None:
    """Also half-way between two decimals, where JavaScript alone would round up."""
    tab = open_page(Page("t", "", ()))
    halves = [sign * k / 16 for k in range(64) for sign in (1, -1)]
    values = [*halves, *(1000 + k / 4 for k in range(8)), 0.47149999, 0.4715, 1.0, 1e-5, -3.21e7, 0.0]
    code = (files("fathometer.report.page") / "static" / "page.js").read_text("utf-8")
    start = code.index("function number(")
    body = code[start : code.index("\n}", start) + 2]
    assert tab.evaluate(f"values => {{ {body}; return values.map(number) }}", values) == [
        number(value) for value in values
    ]
