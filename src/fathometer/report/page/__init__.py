"""Reports for the browser: a result as one HTML file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import pandas as pd

from fathometer.compare.soundings import Soundings
from fathometer.errors import InputError
from fathometer.leaky.run import LeakyRun, LeakySweep
from fathometer.report.page.document import html, require_report
from fathometer.report.page.items import Page
from fathometer.results.files import complete_file
from fathometer.results.history import History
from fathometer.results.linearized import Linearized
from fathometer.results.similarity import SimilarityMap
from fathometer.results.sounding import Sounding

Reportable: TypeAlias = "Sounding | Soundings | LeakyRun | LeakySweep | History | SimilarityMap | Linearized"


def write_report(
    results: Reportable,
    path: str | Path,
    *,
    title: str | None = None,
    facts: pd.DataFrame | None = None,
    atlas: bool = False,
    allow_mismatch: bool = False,
) -> Path:
    """Write a result as one HTML file, which needs nothing but a browser.

    Args:
        results: a sounding; several to compare; a Leaky ResNet or a sweep of them; the history of a training;
            a similarity map of two networks; a linearized network.
        path: the file, `.html`; an existing file is replaced once the new one is complete.
        title: of the page; the name of the network if left out.
        facts: network × family, accuracy, year and others, for several soundings; what is known if left out.
        atlas: show several soundings as an atlas, to search and to choose from, instead of a comparison.
        allow_mismatch: compare soundings that differ in data or settings, with a warning.

    Example:
        >>> import tempfile, torch, fathometer
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
        >>> sounding = fathometer.measure(net, torch.randn(64, 4), samples=64)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fathometer.write_report(sounding, f"{folder}/net.html").read_text("utf-8")[:15]
        '<!doctype html>'
    """
    require_report()
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path.name}: expected a name that ends in .html")
    text = html(page_of(results, title=title, facts=facts, atlas=atlas, allow_mismatch=allow_mismatch))
    with complete_file(path) as part:
        part.write_text(text, "utf-8", errors="replace")  # a name may hold half a surrogate pair
    return path


def page_of(
    results: Reportable,
    *,
    title: str | None = None,
    facts: pd.DataFrame | None = None,
    atlas: bool = False,
    allow_mismatch: bool = False,
) -> Page:
    """Return the page of a result, before it becomes HTML."""
    if isinstance(results, Sounding):
        from fathometer.report.page.sounding import sounding_page

        return sounding_page(results, title)
    if isinstance(results, History):
        from fathometer.report.page.sounding import history_page

        return history_page(results, title)
    if isinstance(results, SimilarityMap):
        from fathometer.report.page.similarity import map_page

        return map_page(results, title)
    if isinstance(results, Linearized):
        from fathometer.report.page.linearized import linearized_page

        return linearized_page(results, title)
    if isinstance(results, LeakyRun | LeakySweep):
        from fathometer.report.page.leaky import leaky_page

        return leaky_page(results, title)
    given: object = results  # a caller without a type checker may give anything
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError(
            "expected a sounding, several by name or in a list, a Leaky ResNet, a sweep, a history, a "
            "similarity map or a linearized network; "
            f"got {type(given).__name__}"
        )
    from fathometer.report.page.networks import atlas_page, comparison_page

    if atlas:
        return atlas_page(results, facts=facts, title=title)
    return comparison_page(results, facts=facts, allow_mismatch=allow_mismatch, title=title)
