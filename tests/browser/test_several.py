"""The page of several soundings, in Chromium."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from fathometer import Sounding
from fathometer.compare import dtw_path
from fathometer.report.page.items import Page, Section
from fathometer.report.page.networks import comparison_page, overlay_view
from tests.browser.conftest import OpenPage
from tests.compare.soundings import sounding

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

OVERLAY, ALIGNMENT, DIFFERENCE = (f"[data-part={part}]" for part in ("overlay", "alignment", "difference"))
POINTS = ".mark-symbol path"


def networks(sizes: tuple[int, ...] = (9, 14, 6)) -> dict[str, Sounding]:
    """Values in steps of an eighth, so that DTW finds ways that are equally good."""
    rng = np.random.default_rng(0)
    return {
        f"net{i}": sounding(
            f"net{i}", rng.integers(0, 9, (size, 2)) / 8, cka=rng.integers(0, 4, (size, 2)) / 4
        )
        for i, size in enumerate(sizes)
    }


def overlay(named: dict[str, Sounding], families: dict[str, str] | None = None) -> Page:
    return Page("overlay", "", (Section("", (overlay_view(named, families or {}),)),))


def whole(names: tuple[str, ...] = ("a", "b", "c", "d")) -> Page:
    """Everything that such a page can show."""
    rng = np.random.default_rng(1)
    named = {name: sounding(name, rng.random((12, 3))) for name in names}
    facts = pd.DataFrame(
        {
            "family": names[0],
            "accuracy": rng.random(4),
            "depth": rng.random(4),
            "year": [2012, 2014, 2014, 2020],
        },
        index=list(names),
    )
    return comparison_page(named, facts)


def ready(tab: Tab, *parts: str) -> None:
    for part in parts or (OVERLAY, ALIGNMENT, DIFFERENCE):
        tab.wait_for_selector(f"{part}[data-ready=true] svg")


def pairs(tab: Tab) -> list[list[str]]:
    return tab.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )


def test_the_alignment_is_that_of_compare(open_page: OpenPage) -> None:
    named = networks()
    tab = open_page(overlay(named))
    tab.get_by_label("Aligned by").select_option("dtw")
    for gauge in ("affinity", "cka"):
        tab.get_by_label("Gauge").select_option(gauge)
        for first in named:
            for second in named:
                tab.get_by_role("combobox", name="A", exact=True).select_option(label=first)
                tab.get_by_role("combobox", name="B", exact=True).select_option(label=second)
                x, y = (named[name].mean(gauge).to_numpy() for name in (first, second))
                path, distance = dtw_path(x, y)
                expected = [[f"relu{i}", f"relu{j}", y[j] - x[i]] for i, j in path]
                found = [[row[0], row[1], pytest.approx(float(row[4]), abs=6e-4)] for row in pairs(tab)]
                assert expected == found
                said = tab.locator("[data-words]").inner_text()
                shown = f"{distance:.3f}" if distance % 1 else f"{distance:.0f}"
                assert (
                    f"warping is {shown}. {len(x)} sites of A and {len(y)} of B make {len(path)} pairs"
                    in said
                )


def test_by_depth_the_ends_meet(open_page: OpenPage) -> None:
    named = networks()
    tab = open_page(overlay(named))
    found = pairs(tab)
    assert len(found) == 14, "a pair for each site of the longer one"
    assert found[0][:2] == ["relu0", "relu0"]
    assert found[-1][:2] == ["relu8", "relu13"]
    assert {row[0] for row in found} == {f"relu{i}" for i in range(9)}
    depths = [(int(row[0][4:]) / 8, int(row[1][4:]) / 13) for row in found]
    assert max(abs(a - b) for a, b in depths) <= 0.5 / 8 + 1e-9
    ready(tab)
    tab.locator(f"{DIFFERENCE} {POINTS}").nth(3).hover(force=True)
    tip = tab.locator(".tip")
    tip.wait_for(state="visible")
    assert tip.inner_text().startswith(f"{found[3][0]} ↔ {found[3][1]}")
    assert found[3][4] in tip.inner_text()
    assert tab.locator(f"{ALIGNMENT} .mark-rule line").count() >= 14


def test_networks_are_ticked_and_coloured(open_page: OpenPage) -> None:
    named = networks((5,) * 9)
    families = {name: "odd" if i % 2 else "even" for i, name in enumerate(named)}
    tab = open_page(overlay(named, families))
    ready(tab)
    points = tab.locator(f"{OVERLAY} {POINTS}")
    assert points.count() == 6 * 5, "the first six of many"
    tab.get_by_role("button", name="all").click()
    tab.wait_for_function(f"document.querySelectorAll('{OVERLAY} {POINTS}').length === 45")
    hues = (
        f"new Set([...document.querySelectorAll('{OVERLAY} {POINTS}')].map(p => p.getAttribute('fill'))).size"
    )
    assert tab.evaluate(hues) == 2
    tab.get_by_label("Colour by").select_option("network")
    tab.wait_for_function(f"{hues} === 9")
    tab.get_by_role("button", name="none").click()
    assert tab.locator(OVERLAY).inner_text() == "Tick a network to see it here."
    box = tab.get_by_role("checkbox", name="net4")
    box.focus()
    tab.keyboard.press("Space")
    assert box.is_checked()
    tab.wait_for_function(f"document.querySelectorAll('{OVERLAY} {POINTS}').length === 5")


def test_sites_without_a_value_are_left_out(open_page: OpenPage) -> None:
    named = {
        "gap": sounding("gap", [0.125, np.nan, 0.375, 0.5]),
        "none": sounding("none", [np.nan, np.nan]),
        "whole": sounding("whole", [0.125, 0.25, 0.375]),
    }
    tab = open_page(overlay(named))
    assert "nothing to compare" in tab.locator("[data-words]").inner_text()
    tab.get_by_role("combobox", name="B", exact=True).select_option(label="whole")
    tab.get_by_label("Aligned by").select_option("dtw")
    path, _ = dtw_path([0.125, 0.375, 0.5], [0.125, 0.25, 0.375])
    assert [row[0] for row in pairs(tab)] == [f"relu{(0, 2, 3)[i]}" for i, _ in path]
    ready(tab)


def test_the_matrix_names_every_row(open_page: OpenPage) -> None:
    tab = open_page(whole())
    matrix = tab.locator("[data-chart=charts-0]")
    tab.wait_for_selector("[data-chart=charts-0][data-ready=true]")
    assert sorted(matrix.locator(".role-axis-label text").all_text_contents())[-4:] == ["a", "b", "c", "d"]
    assert matrix.locator(".mark-rect.role-mark path").count() == 16
    assert matrix.locator(".mark-line path").count() == 3
