"""Results as JSON inside an HTML page: short numbers, no NaN, nothing that could end the script."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

_DIGITS = 5
_UNSAFE = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


def short(value: float | None) -> float | int | None:
    """The number to five significant digits, enough for any screen; None where there is none.

    Example:
        >>> short(0.123456789), short(float("nan")), short(3.0)
        (0.12346, None, 3)
    """
    if value is None or not math.isfinite(value):
        return None
    number = float(f"{value:.{_DIGITS}g}")
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def column(values: Iterable[Any]) -> list[Any]:
    """A column of a table: numbers short, what is missing None, the rest as text."""
    return [_cell(value) for value in values]


def table(frame: pd.DataFrame) -> dict[str, Any]:
    """A data frame by columns, without its index; the page makes rows of it."""
    return {str(name): column(frame[name]) for name in frame.columns}


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
