"""Evil names on pages: they are shown, and nothing else comes of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from unittest import mock

import torch
from torch import nn

from fathometer import History, Site, Sounding, measure
from fathometer.report.page import page_of
from fathometer.report.page.document import html
from fathometer.results.history import Cost, metrics_frame
from fathometer.results.sounding_file import from_json, to_json
from soak.security.trial import Point

PLAIN = "plain"


def sounding(name: str, seed: int = 0) -> Sounding:
    """Of a network, sites, data, a gauge and versions that all are called so."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 5), nn.Tanh())
    found = measure(net, torch.randn(40, 4), samples=20, gauges="affinity,cka", name=name)
    whole = name.encode("utf-8", "replace").decode()  # a table holds no half of a character
    sites = tuple(Site(f"{whole}{site.module}", whole, 1, site.order, site.own) for site in found.sites)
    names = dict(zip((site.name for site in found.sites), (site.name for site in sites), strict=True))
    records = found.records.assign(site=found.records["site"].map(names))
    records[f"own {whole}"] = 1.5
    facts = found.provenance
    made = Sounding(
        sites,
        records,
        replace(
            facts,
            model={**facts.model, "name": name, "weights": name, "class": name, name: name, "family": name},
            data={**facts.data, "name": name},
            versions={**facts.versions, name: name},
            device=name,
            date=name,
        ),
    )
    return from_json(to_json(made))  # as a file gives it


class _Elements(HTMLParser):
    """The elements of a page and the names of their attributes, in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(sorted(name for name, _ in attrs))))

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", (data,)))


def elements(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Of a page."""
    parser = _Elements()
    parser.feed(text)
    parser.close()
    return parser.found


def pages_hold_no_element_from_a_name(names: Sequence[str]) -> Point:
    """Pages of one sounding, of several, of an atlas, of a history, and tables in notebooks."""
    point = Point("no name becomes an element of a page")
    expected = {kind: elements(text) for kind, text in _pages(PLAIN).items()}
    for name in names:
        for kind, text in _pages(name).items():
            point.note(elements(text) == expected[kind], f"{name!r} on the page of {kind}")
    return point


def _pages(name: str) -> dict[str, str]:
    one, two = sounding(name), sounding(name, 1)
    named = {f"{one.sites[0].operator} {place}": found for place, found in enumerate((one, two))}
    film = History(
        (1, 2), (one, one), metrics_frame({one.sites[0].operator: [(1, 0.5)]}), Cost(), ((1, name),)
    )
    with (
        mock.patch("fathometer.report.page.document.chart_library", return_value=""),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # soundings that differ in their data, of one network
        pages = {
            "one sounding": page_of(one, title=name),
            "several": page_of(named, allow_mismatch=True),
            "an atlas": page_of(named, atlas=True),
            "a history": page_of(film),
        }
        found = {kind: html(page) for kind, page in pages.items()}
    return {**found, "a notebook": one._repr_html_(), "a notebook, a history": film._repr_html_()}
