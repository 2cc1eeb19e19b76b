"""What holds for every kind of page: names are text, it fits a phone, and it prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

from fathometer import History, Provenance, SimilarityMap, Sounding
from fathometer.leaky import grid
from fathometer.report.page.items import Page
from fathometer.report.page.leaky import leaky_page
from fathometer.report.page.networks import atlas_page, comparison_page
from fathometer.report.page.similarity import map_page
from fathometer.report.page.sounding import history_page, sounding_page
from fathometer.results.history import metrics_frame
from tests.browser.conftest import OpenPage, overflow
from tests.compare.soundings import sounding
from tests.leaky.networks import SMALL, measured_sweep
from tests.report.figures.drawn import network, transformer

SCRIPT = "<script>alert(1)</script>"
NAMES = (SCRIPT, '"];alert(1);["', "{gauge}", "<img src=x onerror=alert(1)>")


def networks() -> dict[str, Sounding]:
    """Networks whose names, sites, operators, data and gauges are hostile."""
    rng = np.random.default_rng(1)
    found = {}
    for name in NAMES:
        values: dict[str, Any] = {SCRIPT: rng.random((12, 3))}
        one = sounding(name, rng.random((12, 3)), data=SCRIPT, **values)
        sites = tuple(
            msgspec.structs.replace(site, module=f"{SCRIPT}.{site.order}", operator=SCRIPT)
            for site in one.sites
        )
        names = {old.name: new.name for old, new in zip(one.sites, sites, strict=True)}
        found[name] = replace(
            one, sites=sites, records=one.records.assign(site=one.records["site"].map(names))
        )
    return found


def facts() -> pd.DataFrame:
    columns = {"family": SCRIPT, "accuracy": [0.7, 0.5, 0.6, 0.9], "depth": [1.0, 3.0, 2.0, 5.0]}
    return pd.DataFrame({**columns, "year": [2012, 2014, 2014, 2020]}, index=list(NAMES))


def history() -> Page:
    first, second, *_ = networks().values()
    metrics = metrics_frame({SCRIPT: [(0, 1.0), (5, 0.5)]})
    return history_page(History((0, 5), (first, replace(second, sites=first.sites)), metrics))


def leaky() -> Page:
    (run,) = measured_sweep(grid(SMALL, effective_depth=[2.0])).runs
    return leaky_page(replace(run, task=replace(run.task, description={SCRIPT: SCRIPT})), SCRIPT)


def similarity() -> Page:
    one, other, *_ = networks().values()
    names = [[site.name for site in each.sites] for each in (one, other)]
    values = pd.DataFrame(np.random.default_rng(0).random((12, 12)), names[0], names[1])
    facts = Provenance(model={"first": {"name": SCRIPT}, "second": {"name": NAMES[1]}})
    return map_page(SimilarityMap(one.sites, other.sites, values, facts))


PAGES: dict[str, Callable[[], Page]] = {
    "sounding": lambda: sounding_page(networks()[SCRIPT]),
    "several": lambda: comparison_page(networks(), facts()),
    "transformers": lambda: comparison_page({name: transformer(name) for name in NAMES}),
    "transformer": lambda: sounding_page(transformer(SCRIPT)),
    "atlas": lambda: atlas_page(networks(), facts()),
    "history": history,
    "leaky": leaky,
    "map": similarity,
}


@pytest.mark.parametrize("kind", PAGES)
def test_names_are_text_on_a_phone_and_on_paper(open_page: OpenPage, kind: str) -> None:
    """A dialog, a message of the console or a request fails in `open_page`."""
    tab = open_page(PAGES[kind](), viewport={"width": 400, "height": 800}, color_scheme="dark")
    points = tab.locator(f"svg.marks .mark-{'rect' if kind == 'map' else 'symbol'} path")
    points.first.wait_for(state="attached")
    points.last.hover(force=True)
    if kind == "atlas":
        for i in (0, 1):
            tab.locator(".atlas input").nth(i).check()
        tab.wait_for_selector("[data-part=alignment][data-ready=true]")
    assert SCRIPT in tab.locator("main").inner_text() + tab.locator("h1").inner_text()
    assert tab.locator("main script, main img").count() == 0
    assert overflow(tab) <= 0
    tab.emulate_media(media="print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert len(tab.pdf()) > 10_000


@pytest.mark.parametrize("count", [12, 110])  # as SVG, and on a canvas
def test_a_map_shows_names_at_the_pointer(open_page: OpenPage, count: int) -> None:
    one = network(SCRIPT, count)
    tab = open_page(sounding_page(one))
    chart = tab.locator("[data-chart]").locator("svg.marks" if count == 12 else "canvas.marks")
    chart.wait_for(state="attached")
    chart.hover(force=True)
    tab.wait_for_selector(".tip:not([hidden])")
    assert "CKA" in tab.locator(".tip").inner_text()
    assert overflow(tab) <= 0
