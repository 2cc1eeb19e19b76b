"""A page as one HTML file: styles, chart library, programs and data inside it, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fathometer.report.numbers import number
from fathometer.report.page import encoding
from fathometer.report.page.bundle import chart_library
from fathometer.report.page.colours import CATEGORIES
from fathometer.report.page.items import Chart, Facts, Item, Page, Table, View, Words

if TYPE_CHECKING:
    from jinja2 import Template

_HERE = "fathometer.report.page"
_ALWAYS = ("page", "charts", "tables")
_USED = {"atlas": ("overlay",)}  # the programs that a view calls, besides that of a sounding


def html(page: Page) -> str:
    """The whole file, as text."""
    data: dict[str, Any] = {"palette": list(CATEGORIES), "charts": {}, "views": {}}
    sections = []
    for section in page.sections:
        blocks = [_block(item, data) for item in section.items]
        sections.append({"title": section.title, "blocks": blocks})
    programs = [*_ALWAYS, *dict.fromkeys(_views(page)), "start"]
    return _template().render(
        title=page.title,
        lead=page.lead,
        sections=sections,
        style="\n".join(_static(f"{name}.css") for name in programs if _has(f"{name}.css")),
        library=chart_library() if data["charts"] or data["views"] else "",
        programs="\n".join(_static(f"{name}.js") for name in programs),
        data=encoding.script_json(data),
    )


def _block(item: Item, data: dict[str, Any]) -> dict[str, Any]:
    """What the template needs of an item; its data go to where the programs find them."""
    if isinstance(item, Words):
        return {"kind": "words", "text": item.text}
    if isinstance(item, Facts):
        return {"kind": "facts", "title": item.title, "pairs": item.pairs}
    if isinstance(item, Table):
        frame = item.frame
        numeric = [frame[name].dtype.kind in "iuf" for name in frame.columns]
        rows = zip(*(_cells(frame[name]) for name in frame.columns), strict=True)
        heads = list(zip(map(str, frame.columns), numeric, strict=True))
        return {"kind": "table", "heads": heads, "rows": list(rows), "caption": item.caption}
    place = "charts" if isinstance(item, Chart) else "views"
    key = f"{place}-{len(data[place])}"
    if isinstance(item, Chart):
        tables = {name: encoding.table(frame) for name, frame in item.data.items()}
        data[place][key] = {"spec": dict(item.spec), "data": tables}
        return {"kind": "chart", "key": key, "caption": item.caption, "half": item.half}
    data[place][key] = {"name": item.name, "data": item.data, "charts": item.charts}
    return {"kind": "view", "key": key}


def _cells(column: Iterable[Any]) -> list[tuple[str, Any]]:
    """Each value of a table as one reads it, and as the page sorts by it."""
    found = encoding.column(column)
    shown = [
        "" if value is None else number(value) if isinstance(value, float) else str(value) for value in found
    ]
    return list(zip(shown, found, strict=True))


def _views(page: Page) -> Iterable[str]:
    """The programs that the page needs, each once; an atlas or a film shows soundings."""
    for section in page.sections:
        for item in section.items:
            if isinstance(item, View):
                yield from ("sounding", *_USED.get(item.name, ()), item.name)


def _has(name: str) -> bool:
    return (files(_HERE) / "static" / name).is_file()


@cache
def _static(name: str) -> str:
    return (files(_HERE) / "static" / name).read_text("utf-8")


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    source = (files(_HERE) / "templates" / "page.html").read_text("utf-8")
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(source)
