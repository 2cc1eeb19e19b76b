"""The charts by layer, in Chromium."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect

from fathometer.report.page.sounding import sounding_page
from tests.browser.conftest import OpenPage
from tests.report.figures.drawn import transformer


def test_a_click_on_a_name_leaves_its_lines(open_page: OpenPage) -> None:
    tab = open_page(sounding_page(transformer("mine")))
    chart = tab.locator("[data-chart]").nth(1)
    lines = chart.locator(".mark-line path")
    expect(lines).to_have_count(6)  # attention, MLP and block, alone and with the residual sum
    chart.locator(".role-legend-label text", has_text="mlp").click()
    expect(chart.locator(".mark-line path[opacity='1']")).to_have_count(2)
    expect(chart.locator(".mark-line path[opacity='0.12']")).to_have_count(4)
