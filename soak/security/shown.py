"""Evil names on pages and in the terminal: they are shown, and nothing else comes of them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

import torch
from torch import nn
from typer.testing import CliRunner

from fathometer import History, Site, Sounding, measure
from fathometer.cli import app
from fathometer.cli.terminal import Terminal
from fathometer.history import Cost, metrics_frame
from fathometer.report.page import page_of
from fathometer.report.page.document import html
from fathometer.sounding_file import from_json, to_json
from soak.security.trial import Point

PLAIN = "plain"
_CONTROLS = {
    *map(chr, range(0x20)),
    *map(chr, range(0x7F, 0xA0)),
    *"\u200e\u200f\u202a\u202b\u202c\u202d\u202e",
}
_CONTROLS -= {"\n", "\t"}


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
            "several": page_of(named, anyway=True),
            "an atlas": page_of(named, atlas=True),
            "a history": page_of(film),
        }
        found = {kind: html(page) for kind, page in pages.items()}
    return {**found, "a notebook": one._repr_html_(), "a notebook, a history": film._repr_html_()}


def the_terminal_is_not_commanded(folder: Path, names: Sequence[str]) -> Point:
    """What verbs print of such soundings, and errors and warnings that name them."""
    point = Point("no control character or markup of a name reaches the terminal")
    for place, name in enumerate(names):
        files = [sounding(name, seed).save(folder / f"s{place}-{seed}.json") for seed in (0, 1)]
        for verb in (
            ["show", str(files[0])],
            ["compare", *map(str, files), "--anyway"],
            ["compare", *map(str, files), "--over", "weights", "--anyway"],
        ):
            _judge(point, name, verb[0], _printed(verb))
        _judge(point, name, "an error", _written(f"error: {name}: no such file"))
    return point


def _printed(arguments: list[str]) -> str:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = CliRunner().invoke(app, arguments)
    failed = "" if result.exception is None else f"\x1b{result.exception!r}"  # which is judged as broken
    if isinstance(result.exception, SystemExit):
        failed = ""
    return result.output + failed + "".join(_written(str(warning.message)) for warning in told)


def _written(line: str) -> str:
    with mock.patch.dict(os.environ, {"COLUMNS": "200"}):
        console = Terminal()
        with console.capture() as caught:
            console.print(line, soft_wrap=True)
    return caught.get()


def _judge(point: Point, name: str, verb: str, text: str) -> None:
    found = sorted(_CONTROLS & set(text))
    point.note(not found, f"{verb} printed {found[:3]} of {name!r}")
    if name.startswith("[") and verb == "an error":
        point.note(name in text, f"{verb} took {name!r} as markup")
    text.encode()  # a terminal can be sent it
