"""The atlas, in Chromium."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from fathometer import Sounding
from fathometer.compare import dtw_path
from fathometer.report.page.document import html
from fathometer.report.page.items import Page
from fathometer.report.page.networks import atlas_page
from tests.browser.conftest import OpenPage
from tests.compare.soundings import sounding

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

SCATTER, SIGNATURE, ALIGNMENT = (f"[data-part={part}]" for part in ("scatter", "signature", "alignment"))
ROWS = ".atlas tbody tr:visible"


def networks(count: int = 6, sites: int = 8) -> dict[str, Sounding]:
    rng = np.random.default_rng(0)
    found = {}
    for i in range(count):
        values: dict[str, Any] = {
            "cka": rng.random((sites + i % 3, 2)),
            "norm": 100 * rng.random((sites + i % 3, 2)),
        }
        found[f"net {i}"] = sounding(f"net{i}", rng.random((sites + i % 3, 2)), **values)
    return found


def facts(named: dict[str, Any]) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    count = len(named)
    return pd.DataFrame(
        {
            "family": [("ResNet", "VGG", "Swin")[i % 3] for i in range(count)],
            "accuracy": rng.uniform(60, 90, count),
            "parameters": 10 ** rng.uniform(6, 8, count),
            "year": [2012.0 + i for i in range(count - 1)] + [np.nan],
        },
        index=list(named),
    )


def atlas(named: dict[str, Sounding] | None = None) -> Page:
    named = named or networks()
    return atlas_page(named, facts(named))


def names(tab: Tab) -> list[str]:
    return tab.locator(f"{ROWS} a").all_inner_texts()


def opened(tab: Tab) -> str:
    tab.locator(".opened h2").wait_for(state="visible")
    return tab.locator(".opened h2").inner_text()


def test_the_numbers_are_those_of_the_soundings(open_page: OpenPage) -> None:
    named = networks()
    tab = open_page(atlas(named))
    heads = [text.strip() for text in tab.locator(".atlas th").all_inner_texts()]
    for gauge in ("affinity", "norm"):
        tab.get_by_label("Gauge").select_option(gauge)
        for i, measured in enumerate(named.values()):
            cells = (
                tab.locator(ROWS)
                .nth(i)
                .locator("td")
                .evaluate_all("cells => cells.map(cell => cell.dataset.value)")
            )
            for name, value in measured.summary(gauge).items():
                assert float(cells[heads.index(str(name))]) == pytest.approx(value, rel=1e-5)
            assert int(cells[heads.index("sites")]) == len(measured.sites)
    assert tab.locator(f"{ROWS} .spark path").count() == 6
    tab.wait_for_function(f"document.querySelector('{SCATTER}').textContent.includes('median of norm')")


def test_search_families_and_order(open_page: OpenPage) -> None:
    named = networks()
    tab = open_page(atlas(named))
    tab.wait_for_selector(f"{SCATTER}[data-ready=true]")
    tab.get_by_label("Search").fill("vgg")
    assert names(tab) == ["net 1", "net 4"]
    assert tab.get_by_role("status").first.inner_text() == "2 of 6 soundings"
    tab.wait_for_function(f"document.querySelectorAll('{SCATTER} .mark-symbol path').length === 2")
    tab.get_by_label("Search").fill("")
    tab.get_by_role("button", name="ResNet").click()
    tab.get_by_role("button", name="Swin").click()
    assert names(tab) == ["net 0", "net 2", "net 3", "net 5"]
    tab.get_by_role("button", name="ResNet").click()
    tab.get_by_role("button", name="Swin").click()
    tab.get_by_role("button", name="median").click()
    medians = pd.Series({name: measured.summary()["median"] for name, measured in named.items()})
    assert names(tab) == list(medians.sort_values().index)
    tab.get_by_label("Search").fill("nothing of the kind")
    tab.wait_for_function(f"document.querySelector('{SCATTER}').textContent.startsWith('Nothing')")


def test_the_axes_of_the_chart_can_be_chosen(open_page: OpenPage) -> None:
    tab = open_page(atlas())
    tab.wait_for_selector(f"{SCATTER}[data-ready=true]")
    assert tab.locator(f"{SCATTER} .mark-symbol path").count() == 6  # parameters, which all have
    tab.get_by_label("x axis").select_option("year")
    tab.wait_for_function(f"document.querySelectorAll('{SCATTER} .mark-symbol path').length === 5")
    tab.get_by_text("1 without year or median is not in the chart.").wait_for()
    tab.get_by_label("x axis").select_option("parameters")
    tab.wait_for_function(f"document.querySelectorAll('{SCATTER} .mark-symbol path').length === 6")
    tab.get_by_label("y axis").select_option("accuracy")
    tab.wait_for_function(f"document.querySelector('{SCATTER}').textContent.includes('accuracy')")
    tab.locator(f"{SCATTER} .mark-symbol path").nth(2).hover(force=True)
    tab.locator(".tip").wait_for(state="visible")
    assert tab.locator(".tip").inner_text().startswith("net 2")
    tab.locator(f"{SCATTER} .mark-symbol path").nth(2).click(force=True)
    assert opened(tab) == "net 2"


def test_a_row_opens_its_sounding_and_back_closes_it(open_page: OpenPage) -> None:
    named = networks()
    tab = open_page(atlas(named))
    tab.locator(ROWS).nth(3).locator("td").last.click()
    assert opened(tab) == "net 3"
    assert tab.url.endswith("#model=net%203")
    tab.wait_for_selector(f"{SIGNATURE}[data-ready=true]")
    assert tab.locator(f"{SIGNATURE} .mark-symbol.role-mark path").count() >= len(named["net 3"].sites)
    tab.locator(".strip [role=option]").nth(2).click()
    assert f"{named['net 3'].mean('cka').iloc[2]:.3f}" in tab.locator(".details").inner_text()
    tab.get_by_role("link", name="net 5").click()
    assert opened(tab) == "net 5"
    tab.go_back()
    tab.wait_for_function("document.querySelector('.opened h2').textContent === 'net 3'")
    assert tab.locator("tr[aria-current=true]").count() >= 1
    tab.go_back()
    tab.locator(".opened").wait_for(state="hidden")
    tab.go_forward()
    assert opened(tab) == "net 3"
    tab.get_by_role("button", name="Close").click()
    tab.locator(".opened").wait_for(state="hidden")


def test_two_ticks_compare(open_page: OpenPage) -> None:
    named = networks()
    tab = open_page(atlas(named))
    tab.get_by_label("Compare net 1").check()
    assert "compare it with net 1" in tab.get_by_role("status").first.inner_text()
    tab.get_by_label("Compare net 2").check()
    assert opened(tab) == "net 1 and net 2"
    tab.wait_for_selector(f"{ALIGNMENT}[data-ready=true]")
    tab.get_by_label("Aligned by").select_option("dtw")
    path, distance = dtw_path(*(named[name].signature.to_numpy() for name in ("net 1", "net 2")))
    assert f"warping is {distance:.3f}" in tab.locator("[data-words]").inner_text()
    assert f"make {len(path)} pairs" in tab.locator("[data-words]").inner_text()
    tab.get_by_label("Compare net 4").check()
    tab.wait_for_function("document.querySelector('.opened h2').textContent === 'net 2 and net 4'")
    assert not tab.get_by_label("Compare net 1").is_checked(), "a third takes the place of the first"
    tab.reload()
    assert opened(tab) == "net 2 and net 4", "the address says what is open"
    tab.get_by_label("Compare net 4").uncheck()
    tab.locator(".opened").wait_for(state="hidden")
    tab.goto(tab.url.partition("#")[0] + "#model=%3Cb%3Enobody")
    tab.wait_for_function(
        "document.querySelector('.opened .view')?.textContent.includes('no network called <b>nobody')"
    )


def test_the_keyboard_reaches_everything(open_page: OpenPage) -> None:
    tab = open_page(atlas())
    tab.get_by_label("Search").focus()
    for _ in range(40):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.matches('.atlas a')"):
            break
    assert tab.evaluate("document.activeElement.textContent") == "net 0"
    for _ in range(3):
        tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowUp")
    assert tab.evaluate("document.activeElement.textContent") == "net 2"
    tab.keyboard.press("End")
    assert tab.evaluate("document.activeElement.textContent") == "net 5"
    tab.keyboard.press("Enter")
    assert opened(tab) == "net 5"
    assert tab.evaluate("document.activeElement.textContent") == "net 5", "the heading has the focus"
    tab.keyboard.press("Tab")
    tab.keyboard.press("Enter")
    tab.locator(".opened").wait_for(state="hidden")
    assert tab.evaluate("document.activeElement.matches('.atlas a')")


def test_soundings_need_not_be_alike(open_page: OpenPage) -> None:
    named = {
        "one": sounding("one", [0.1, 0.2, np.nan]),
        "two": sounding("two", [0.5], other=[3.0], data="noise"),
    }
    bare = sounding("three", [0.5, 0.6], data="noise")
    named["three"] = Sounding(bare.sites, bare.records.rename(columns={"affinity": "mine"}), bare.provenance)
    tab = open_page(atlas_page(named))
    assert "data" in tab.locator(".atlas thead").inner_text()
    tab.goto(tab.url + "#model=one&with=three")
    tab.wait_for_function(
        "document.querySelector('.opened .view')?.textContent.includes('no gauge in common')"
    )
    tab.get_by_label("Gauge").first.select_option("other")
    assert tab.locator(ROWS).nth(1).inner_text().count("3") >= 3
    assert tab.locator(ROWS).nth(0).inner_text().count("–") == 4
    tab.goto(tab.url.partition("#")[0] + "#model=one")
    assert opened(tab) == "one"
    assert "1 of 3 sites have no finite value" in tab.locator("[data-missing]").inner_text()


@pytest.mark.slow
def test_three_hundred_networks_open_soon(open_page: OpenPage) -> None:
    """That they fit ten megabytes is in `tests/report/page/test_atlas.py`."""
    rng = np.random.default_rng(0)
    gauges: dict[str, Any] = {f"gauge_{k}": rng.standard_normal((100, 2)) for k in range(19)}
    named = {f"net {i}": sounding(f"net {i}", rng.random((100, 2)), **gauges) for i in range(300)}
    text = html(atlas(named))
    tab = open_page(text)
    tab.wait_for_selector(f"{SCATTER}[data-ready=true]")
    assert tab.evaluate("performance.now()") < 5000
    tab.get_by_label("Search").fill("29 vgg")
    expected = [f"net {i}" for i in range(300) if "29" in str(i) and i % 3 == 1]
    assert names(tab) == expected
    tab.get_by_label("Search").fill("")
    tab.get_by_role("link", name="net 299").click()
    assert opened(tab) == "net 299"
