"""Where in a TOML file a key or a value stands, so that an error can say so. The parser does not tell."""

from __future__ import annotations

import json
import re

_HEADER = re.compile(r"^\[\[?\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""^((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


class Lines:
    r"""The lines of a TOML text, by the keys that they define.

    Example:
        >>> lines = Lines("seeds = [0]\n[data]\nnoise = 'random'\n")
        >>> lines.of("data", "noise"), lines.of("data", "missing"), lines.of("elsewhere")
        (3, 2, None)
    """

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._places: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        for number, line in enumerate(self._lines, 1):
            line = line.strip()
            if header := _HEADER.match(line):
                table = _parts(header[1])
                self._note(table, number)
            elif key := _KEY.match(line):
                self._note((*table, *_parts(key[1])), number)

    def of(self, *path: str, value: object = None) -> int | None:
        """The line that defines a key, or its table; with a value, where that stands."""
        while path and path not in self._places:
            path = path[:-1]
        if not path:
            return None
        start = self._places[path]
        if isinstance(value, str):
            for number in range(start, len(self._lines) + 1):
                if any(quoted in self._lines[number - 1] for quoted in (json.dumps(value), f"'{value}'")):
                    return number
        return start

    def _note(self, path: tuple[str, ...], number: int) -> None:
        for length in range(1, len(path) + 1):
            self._places.setdefault(path[:length], number)


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))
