"""JSON as its standard has it: other programs can read what fathometer writes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from fathometer.errors import InputError

_HALF = r"\ud"  # how half a character begins in JSON; a whole one may, too


def strict_json(text: str | bytes) -> Any:
    r"""Parse JSON. `NaN` and `Infinity` are refused: the standard does not have them.

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


def read_json(path: Path, what: str) -> Any:
    """Parse a JSON file; errors say that it is not `what`."""
    try:
        return strict_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: broken, or not {what} ({error})") from error


def as_json_number(number: Any) -> Any:
    """Return a number as JSON can hold it, infinities and NaN as text; other values stay as they are.

    Example:
        >>> as_json_number(0.5), as_json_number(float("-inf"))
        (0.5, '-inf')
    """
    return number if not isinstance(number, float) or math.isfinite(number) else str(number)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")
