"""JSON as its standard has it: what others wrote is read so, wherever fathometer writes it so."""

from __future__ import annotations

import json
import math
from typing import Any

NOT_FINITE = ("inf", "-inf", "nan")
"""How numbers that JSON has not are written: as text."""

_HALF = r"\ud"  # how half a character begins in JSON; a whole one may, too


def strict_json(text: str | bytes) -> Any:
    r"""What a text holds. `NaN` and `Infinity` are no numbers, and could not be written again.

    Halves of characters, which no table and no page can hold, become question marks.

    Raises:
        ValueError: if it is not JSON; a `RecursionError` if it is too deep.

    Example:
        >>> strict_json(r'{"name": "caf\udce9", "count": 1e3}')
        {'name': 'caf?', 'count': 1000.0}
    """
    found = json.loads(text, parse_constant=_refuse_constant)
    if _HALF in (text if isinstance(text, str) else text.decode()).lower():
        found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    return found


def as_json_number(number: Any) -> Any:
    """A number as JSON can hold it; what is not a float stays as it is.

    Example:
        >>> as_json_number(0.5), as_json_number(float("-inf"))
        (0.5, '-inf')
    """
    return number if not isinstance(number, float) or math.isfinite(number) else str(number)


def json_number(value: Any) -> float:
    """A number that `as_json_number` wrote. No other text is one, though `float` takes `1_0e-2`.

    Example:
        >>> json_number("-inf"), json_number(3)
        (-inf, 3.0)
    """
    if isinstance(value, str) and value not in NOT_FINITE:
        raise ValueError(f"number {value!r}")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError(f"number {value!r}")
    return float(value)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
