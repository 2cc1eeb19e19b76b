"""A page as one HTML file: styles, chart library, programs and data are inside it, nothing is fetched."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fathometer.errors import import_extra
from fathometer.report.figures.style import PALETTE
from fathometer.report.numbers import number
from fathometer.report.page.items import Chart, Facts, Item, Page, Paragraph, Table, View

if TYPE_CHECKING:
    from jinja2 import Template

CATEGORIES = PALETTE[:6]
"""The colours of series, without the last: a dark page hides it."""

_HERE = "fathometer.report.page"
_PROGRAMS = {"atlas": ("sounding", "overlay", "atlas"), "film": ("sounding", "film"), "overlay": ("overlay",)}
_UNSAFE = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}
_LARGEST = 1e38  # what float32 holds, with some room


def html(page: Page) -> str:
    """Return the whole file as text."""
    data: dict[str, Any] = {"palette": list(CATEGORIES), "charts": {}, "views": {}}
    sections = [
        {"title": section.title, "blocks": [_block(item, data) for item in section.items]}
        for section in page.sections
    ]
    views = [view["name"] for view in data["views"].values()]
    used = dict.fromkeys(name for view in views for name in _PROGRAMS.get(view, ("sounding", view)))
    programs = ["page", *used, "start"]
    return _template().render(
        title=page.title,
        lead=page.lead,
        sections=sections,
        style=_static("page.css"),
        library=chart_library() if data["charts"] or views else "",
        programs="\n".join(_static(f"{name}.js") for name in programs),
        data=script_json(data),
    )


def require_report() -> None:
    """Fail early, and say which extra is missing."""
    for package in ("altair", "jinja2", "vl_convert"):
        import_extra(package, extra="report", purpose="an HTML report")


@cache
def chart_library() -> str:
    """Return JavaScript that defines `vegaEmbed` (0.9 MB), of the version that altair writes for."""
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    code = str(vl_convert.javascript_bundle("globalThis.vegaEmbed = vegaEmbed;", vl_version=version))
    return code.replace("</script", "<\\/script")


def json_value(value: Any) -> Any:
    """Return a value as JSON takes it: None if not finite, a whole number without its point, else as text.

    The digits stay: a value is rounded once, where it is shown.

    Example:
        >>> json_value(0.123456789), json_value(float("nan")), json_value(np.float64(3)), json_value("net")
        (0.123456789, None, 3, 'net')
    """
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if not isinstance(value, float | np.floating):
        return str(value)
    found = float(value)
    if not math.isfinite(found):
        return None
    return int(found) if found.is_integer() and abs(found) < 1e15 else found


def columns_of(frame: pd.DataFrame) -> dict[str, Any]:
    """Return a data frame by columns, without its index; the page makes rows of it."""
    return {str(name): [json_value(value) for value in frame[name]] for name in frame.columns}


def packed(values: Any) -> dict[str, str]:
    """Encode numbers as float32 in base64, a third of their size as text; what is not finite is NaN.

    `page.js` unpacks them. Where float32 would be shown as another number than the full value, the next
    float32 is taken instead.

    Example:
        >>> packed([1.0, float("inf")])
        {'float32 base64': 'AACAPwAAwH8='}
    """
    full = np.asarray(values, float)
    full = np.where(np.abs(full) <= _LARGEST, full, np.nan)
    small = full.astype("<f4")
    for place in np.flatnonzero(_may_read_otherwise(full, small)):
        if number(float(small.flat[place])) != number(float(full.flat[place])):
            beyond = math.copysign(math.inf, float(full.flat[place]) - float(small.flat[place]))
            small.flat[place] = np.nextafter(small.flat[place], np.float32(beyond))
    return {"float32 base64": base64.b64encode(small.tobytes()).decode("ascii")}


def _may_read_otherwise(full: Any, small: Any) -> Any:
    """Return where a number is so near a border of rounding that its float32 may be on the other side."""
    size = np.abs(full)
    with np.errstate(divide="ignore", invalid="ignore"):
        shown = 2 - np.floor(np.log10(size))  # decimals in exponential form
        digits = np.where((size >= 1e-3) & (size < 1e5), np.where(size < 100, 3, 1), shown)
        scaled = size * 10.0**digits
        border = np.abs(scaled % 1 - 0.5) <= 1e-7 * scaled
        limit = np.isin(np.abs(small), np.array([1e-3, 100, 1e5], "<f4")) | (small == np.round(small))
    return np.isfinite(full) & (small != full) & (border | limit)


def script_json(data: Mapping[str, Any]) -> str:
    r"""Return JSON that can be inside a `<script>` element: no character of it can close the element.

    Example:
        >>> script_json({"name": "</script>"})
        '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_UNSAFE)


def _block(item: Item, data: dict[str, Any]) -> dict[str, Any]:
    """Return what the template needs of an item; its data go into `data`, where the programs find them."""
    if isinstance(item, Paragraph):
        return {"kind": "paragraph", "text": item.text}
    if isinstance(item, Facts):
        return {"kind": "facts", "title": item.title, "pairs": item.pairs}
    if isinstance(item, Table):
        frame = item.frame
        numeric = [frame[name].dtype.kind in "iuf" for name in frame.columns]
        rows = zip(*(_cells(frame[name]) for name in frame.columns), strict=True)
        heads = list(zip(map(str, frame.columns), numeric, strict=True))
        return {"kind": "table", "heads": heads, "rows": list(rows), "caption": item.caption}
    if isinstance(item, Chart):
        key = f"charts-{len(data['charts'])}"
        tables = {name: columns_of(frame) for name, frame in item.data.items()}
        data["charts"][key] = {"spec": dict(item.spec), "data": tables}
        return {"kind": "chart", "key": key, "caption": item.caption, "half": item.half}
    assert isinstance(item, View)
    key = f"views-{len(data['views'])}"
    data["views"][key] = {"name": item.name, "data": item.data, "charts": item.charts}
    return {"kind": "view", "key": key}


def _cells(column: Iterable[Any]) -> list[tuple[str, Any]]:
    """Return each value of a column for reading, and for sorting."""
    found = [json_value(value) for value in column]
    shown = ["" if v is None else number(v) if isinstance(v, float) else str(v) for v in found]
    return list(zip(shown, found, strict=True))


@cache
def _static(name: str) -> str:
    return (files(_HERE) / "static" / name).read_text("utf-8")


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    source = (files(_HERE) / "templates" / "page.html").read_text("utf-8")
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(source)
