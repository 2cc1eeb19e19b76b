"""The film of a training, in Chromium."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from fathometer.report.page.sounding import history_page
from fathometer.results.history import History, metrics_frame
from tests.browser.conftest import OpenPage
from tests.report.page.test_film import history

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

FRAME, MAP, METRIC = (f"[data-part={part}]" for part in ("frame", "map", "metric"))


def opened(open_page: OpenPage, found: History, **settings: Any) -> Tab:
    tab: Tab = open_page(history_page(found), **settings)
    for part in (FRAME, MAP, METRIC):
        tab.wait_for_selector(f"{part}[data-ready=true]")
    return tab


def shown(tab: Tab) -> int:
    return int(tab.locator(".stage").get_attribute("data-step") or -1)


def told(tab: Tab) -> list[str]:
    """What the points of the frame say."""
    return tab.locator(f"{FRAME} .mark-symbol path[aria-label]").evaluate_all(
        "points => points.map((point) => point.getAttribute('aria-label'))"
    )


def expected(found: History, step: int) -> list[str]:
    row = found.signature.loc[step]
    return [f"{site} {value:.3f}" for site, value in row.items()]


def test_it_opens_at_the_end_and_does_not_play(open_page: OpenPage) -> None:
    found = history()
    tab = opened(open_page, found)
    assert shown(tab) == 50
    assert told(tab) == expected(found, 50)
    tab.wait_for_timeout(700)
    assert shown(tab) == 50
    said = tab.locator("[data-now]").inner_text()
    assert said == f"Step 50 of 50: loss {1 / 51:.3f}. Hollow: step 0."


def test_the_slider_chooses_a_step_and_the_axis_stays(open_page: OpenPage) -> None:
    found = history()
    tab = opened(open_page, found)
    labels = f"{FRAME} .role-axis-label text"
    before = tab.locator(labels).all_inner_texts()
    slider = tab.get_by_label("Step", exact=True)
    for place, step in enumerate(found.steps):
        slider.fill(str(place))
        tab.wait_for_function(f"document.querySelector('.stage').dataset.step === '{step}'")
        assert told(tab) == expected(found, step)
        assert slider.get_attribute("aria-valuetext") == f"step {step}"
        assert tab.locator(labels).all_inner_texts() == before


def test_it_plays_to_the_end(open_page: OpenPage) -> None:
    tab = opened(open_page, history(tuple(range(0, 40, 4))))
    button = tab.get_by_role("button", name="Play")
    button.click()
    pause = tab.get_by_role("button", name="Pause")
    assert pause.get_attribute("aria-pressed") == "true"
    assert shown(tab) < 36
    tab.wait_for_function("document.querySelector('.stage').dataset.step === '36'", timeout=15_000)
    tab.get_by_role("button", name="Play").wait_for(timeout=5000)
    tab.wait_for_timeout(700)
    assert shown(tab) == 36


def test_keys_play_and_step(open_page: OpenPage) -> None:
    tab = opened(open_page, history())
    tab.locator(".stage").focus()
    tab.keyboard.press("ArrowLeft")
    assert shown(tab) == 20
    tab.keyboard.press("Home")
    assert shown(tab) == 0
    tab.keyboard.press("ArrowRight")
    assert shown(tab) == 10
    tab.keyboard.press("End")
    assert shown(tab) == 50
    tab.keyboard.press("Space")
    assert tab.get_by_role("button", name="Pause").count() == 1
    assert shown(tab) < 50
    tab.keyboard.press("Space")
    assert tab.get_by_role("button", name="Play").count() == 1
    tab.get_by_label("Step", exact=True).focus()
    tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("Home")
    assert shown(tab) == 0


def test_a_click_on_the_map_goes_there(open_page: OpenPage) -> None:
    tab = opened(open_page, history())
    mark, canvas = tab.locator(".mark"), tab.locator(f"{MAP} canvas")
    canvas.scroll_into_view_if_needed()
    last = mark.bounding_box()
    assert last is not None
    box = canvas.bounding_box()
    assert box is not None
    tab.mouse.click(last["x"] - 0.45 * box["width"], last["y"] + last["height"] / 2)
    tab.wait_for_function("document.querySelector('.stage').dataset.step !== '50'")
    first = mark.bounding_box()
    assert first is not None
    assert first["x"] < last["x"]
    assert box["x"] <= first["x"]
    assert first["x"] + first["width"] <= box["x"] + box["width"]


def test_gauges_and_metrics_can_be_switched(open_page: OpenPage) -> None:
    found = history()
    metrics = metrics_frame({"loss": [(0, 1.0), (50, 0.5)], "accuracy": [(0, 0.1), (50, 0.9)]})
    tab = opened(open_page, replace(found, metrics=metrics))
    tab.get_by_label("Gauge").select_option("stable_rank_x")
    tab.wait_for_function(f"document.querySelector('{FRAME} svg')?.textContent.includes('stable rank x')")
    change = found.change("stable_rank_x")
    row = tab.locator("[data-part=change] tbody tr").first.inner_text()
    assert f"{change['change'].iloc[0]:.3f}" in row
    tab.get_by_label("Metric").select_option("accuracy")
    tab.wait_for_function(f"document.querySelector('{METRIC} svg')?.textContent.includes('accuracy')")
    assert "loss 0.500, accuracy 0.900" in tab.locator("[data-now]").inner_text()


@pytest.mark.parametrize("steps", [(7,), (0, 1)])
def test_a_short_film(open_page: OpenPage, steps: tuple[int, ...]) -> None:
    tab = open_page(history_page(history(steps, batches=1)))
    tab.wait_for_selector(f"{FRAME}[data-ready=true]")
    assert shown(tab) == steps[-1]
    assert tab.get_by_role("button", name="Play").count() == len(steps) - 1
