"""What a page is made of: sections of paragraphs, facts, charts, tables and views. Plain data, no HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pandas as pd


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Facts:
    """Names and values, folded under a title."""

    title: str
    pairs: Mapping[str, str]


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite chart. It names its data, which are given beside it.

    Attributes:
        spec: the chart, `width="container"`; its `description` is for screen readers.
        data: a table for each name that the chart uses.
        caption: a sentence under it.
        half: whether two of them are side by side where there is room.
    """

    spec: Mapping[str, Any]
    data: Mapping[str, pd.DataFrame]
    caption: str = ""
    half: bool = False


@dataclass(frozen=True)
class Table:
    """Rows that can be sorted and filtered."""

    frame: pd.DataFrame
    caption: str = ""


@dataclass(frozen=True)
class View:
    """An interactive part of the page: a program of `static/` by name, and its data.

    Attributes:
        name: `sounding`, `overlay`, `atlas`, `runs` or `film`: the file in `static/`, and the class in it.
        data: what `Views[name]` is given, as JSON.
        charts: Vega-Lite charts that it draws with data of its own.
    """

    name: str
    data: Mapping[str, Any]
    charts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


Item: TypeAlias = Paragraph | Facts | Chart | Table | View


@dataclass(frozen=True)
class Section:
    """A heading and the items under it."""

    title: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Page:
    """A report: a title, a line under it, and its sections."""

    title: str
    lead: str
    sections: tuple[Section, ...]
