"""Pages in a real browser: Debian's Chromium, headless, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from fathometer.report.page.document import html
from fathometer.report.page.items import Page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Request
    from playwright.sync_api import Page as Tab

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
_QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
)

OpenPage: TypeAlias = "Callable[..., Tab]"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs the browser."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None:
                item.add_marker(pytest.mark.skip(reason="Chromium is not installed"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=_QUIET)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[OpenPage]:
    """Open a page from disk, as a user does; what the console says or the page fetches fails the test."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def watch_requests(asked: Request) -> None:
        if not asked.url.startswith(("file:", "data:", "blob:")):
            complaints.append(f"fetched {asked.url}")

    def opened(page: Page | str | Path, **settings: Any) -> Tab:
        file = page if isinstance(page, Path) else tmp_path / f"page-{len(contexts)}.html"
        if not isinstance(page, Path):
            file.write_text(page if isinstance(page, str) else html(page), "utf-8")
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **settings})
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda said: complaints.append(f"{said.type}: {said.text}"))
        tab.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        tab.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        tab.on("request", watch_requests)
        tab.goto(file.as_uri())
        tab.wait_for_selector("html[data-ready=true]")
        return tab

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def overflow(tab: Tab) -> int:
    """By how many pixels the page is wider than its window."""
    return int(tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
