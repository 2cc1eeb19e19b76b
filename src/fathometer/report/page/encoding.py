"""Results as JSON inside an HTML page: short numbers, no NaN, nothing that could end the script."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from fathometer.report.numbers import number

_LARGEST = 1e38  # what float32 holds, with some room
_UNSAFE = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


def short(value: float | None) -> float | int | None:
    """Return the number as JSON takes it: None for what is not finite, a whole number without its point.

    The digits stay: a value is rounded once, where it is shown.

    Example:
        >>> short(0.123456789), short(float("nan")), short(3.0)
        (0.123456789, None, 3)
    """
    if value is None or not math.isfinite(value):
        return None
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else float(value)


def column(values: Iterable[Any]) -> list[Any]:
    """A column of a table: numbers short, what is missing None, the rest as text."""
    return [_cell(value) for value in values]


def table(frame: pd.DataFrame) -> dict[str, Any]:
    """A data frame by columns, without its index; the page makes rows of it."""
    return {str(name): column(frame[name]) for name in frame.columns}


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
    for place in np.flatnonzero(np.isfinite(full) & (small != full)):
        if number(float(small.flat[place])) != number(float(full.flat[place])):
            beyond = math.copysign(math.inf, float(full.flat[place]) - float(small.flat[place]))
            small.flat[place] = np.nextafter(small.flat[place], np.float32(beyond))
    return {"float32 base64": base64.b64encode(small.tobytes()).decode("ascii")}


def script_json(data: Mapping[str, Any]) -> str:
    r"""JSON that can stand in a `<script>` element: no character of it can close the element.

    Example:
        >>> script_json({"name": "</script>"})
        '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_UNSAFE)


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return short(float(value))
    return str(value)
