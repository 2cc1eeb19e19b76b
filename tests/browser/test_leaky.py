"""The page of Leaky ResNets, in Chromium."""

from __future__ import annotations

import pytest

from fathometer.leaky import LeakySweep, grid
from fathometer.leaky.theory import check_all
from fathometer.report.page.items import Page
from fathometer.report.page.leaky import leaky_page
from tests.browser.conftest import OpenPage
from tests.leaky.networks import SMALL, measured_sweep

PARTS = (
    "spectra weight_spectra energies hamiltonians dimensions affinity path samples losses crit "
    "against-dimensions against-errors against-affinity against-lengths against-momenta"
).split()


@pytest.fixture(scope="module")
def depths() -> LeakySweep:
    return measured_sweep(grid(SMALL, effective_depth=[0.0, 2.0, 4.0], seeds=2))


@pytest.fixture(scope="module")
def page(depths: LeakySweep) -> Page:
    return leaky_page(depths)


def ready(part: str) -> str:
    return f"[data-part={part}][data-ready=true]"


def test_every_chart_of_a_sweep_is_drawn(open_page: OpenPage, page: Page) -> None:
    tab = open_page(page)
    for part in PARTS:
        tab.wait_for_selector(ready(part))
        assert tab.locator(f"[data-part={part}] svg.marks").count() == 1


def test_choosing_a_network_shows_its_numbers(open_page: OpenPage, page: Page, depths: LeakySweep) -> None:
    tab = open_page(page)
    choice = tab.get_by_role("combobox", name="Network")
    run = depths.runs[2]
    assert choice.locator("option").nth(2).inner_text() == "L̃ = 2, k* = 2, seed 0"
    choice.select_option("2")
    facts = tab.locator(".details dl").inner_text()
    assert f"{run.measures.summary['cost_of_identity']:.3f}" in facts
    held = sum(statement.holds for statement in check_all(run.path, run.gamma0))
    assert f"{held} of" in tab.locator("[data-part=theory]").inner_text()
    assert tab.locator("[data-part=networks] tr[aria-current=true]").get_attribute("data-run") == "2"
    first = f"{run.measures.points['cost_of_identity'][0]:.1f}"
    tab.locator("[data-part=dimensions] path[aria-label*='cost of identity']").first.hover(force=True)
    tip = tab.locator(".tip")
    tip.wait_for(state="visible")
    assert first in tip.inner_text()


def test_a_point_of_the_sweep_leads_to_its_network(open_page: OpenPage, page: Page) -> None:
    tab = open_page(page)
    tab.wait_for_selector(ready("against-errors"))
    tab.locator("[data-part=against-errors] .mark-symbol path[aria-label*='seed 1']").first.click(force=True)
    assert "seed 1" in tab.locator(".details strong").inner_text()
    row = tab.locator("[data-part=networks] tbody tr").first
    row.focus()
    tab.keyboard.press("Enter")
    assert tab.locator(".details strong").inner_text() == "L̃ = 0, k* = 2, seed 0"


def test_a_plain_resnet_says_what_it_lacks(open_page: OpenPage, page: Page) -> None:
    tab = open_page(page)
    tab.get_by_role("combobox", name="Network").select_option("0")
    assert "nothing to show" in tab.locator("[data-part=hamiltonians]").inner_text()
    assert "A plain ResNet" in tab.locator("[data-warnings]").inner_text()
    tab.get_by_role("combobox", name="Network").select_option("5")
    tab.wait_for_selector("[data-part=hamiltonians] svg.marks")


def test_statements_can_be_filtered(open_page: OpenPage, page: Page) -> None:
    tab = open_page(page)
    theory = tab.locator("[data-part=theory]")
    every = theory.locator("tbody tr:visible").count()
    theory.get_by_label("Filter rows").fill("Theorem 4")
    assert 0 < theory.locator("tbody tr:visible").count() < every
