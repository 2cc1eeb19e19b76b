"""A table of a plan, read key by key; what is wrong is refused with its line and what was meant."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fathometer.errors import InputError
from fathometer.survey.lines import Lines


class Section:
    """One table of the file.

    Args:
        values: of the table.
        file: what errors call the file.
        lines: of the file.
        path: of the table in the file.
    """

    def __init__(
        self, values: Mapping[str, Any], file: str, lines: Lines, path: tuple[str, ...] = ()
    ) -> None:
        self.values, self.path = values, path
        self._file, self._lines = file, lines

    def error(self, message: str, key: str | None = None, value: object = None) -> InputError:
        """The error, after the file and the line of the key or of the value."""
        path = self.path if key is None else (*self.path, key)
        line = self._lines.of(*path, value=value)
        place = self._file if line is None else f"{self._file}, line {line}"
        return InputError(f"{place}: {message}")

    def only(self, known: Iterable[str]) -> None:
        """Refuse a key that is not known."""
        names = list(known)
        for key in self.values:
            if key not in names:
                where = f" in [{'.'.join(self.path)}]" if self.path else ""
                raise self.error(f"unknown key {key!r}{where}; {suggestion(key, names)}", key)

    def section(self, key: str) -> Section:
        """A table in this one; an empty one if it is not there."""
        values = self.values.get(key, {})
        if not isinstance(values, dict):
            raise self.error(f"{key}: expected a table, [{'.'.join((*self.path, key))}], got {values!r}", key)
        return Section(values, self._file, self._lines, (*self.path, key))

    def whole(self, key: str, default: Any, least: int) -> Any:
        """A whole number from `least`."""
        value = self.values.get(key, default)
        if value is default:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**63:
            raise self.error(f"{key}: expected a whole number from {least}, got {value!r}", key)
        return value

    def number(self, key: str, default: Any, least: float = 0.0) -> Any:
        """A finite number from `least`."""
        value = self.values.get(key, default)
        if value is default:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
            raise self.error(f"{key}: expected a number from {least:g}, got {value!r}", key)
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.error(f"{key}: expected true or false, got {value!r}", key)
        return value

    def word(self, key: str, default: Any, known: Sequence[str] = ()) -> Any:
        """A text, one of those that are known."""
        value = self.values.get(key, default)
        if value is default:
            return default
        if not isinstance(value, str) or not value:
            raise self.error(f"{key}: expected a text, got {value!r}", key)
        if known and value not in known:
            raise self.error(
                f"{key}: expected {', '.join(known)}, got {value!r}; {suggestion(value, known)}", key
            )
        return value

    def words(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A text or a list of them."""
        value = self.values.get(key, list(default))
        entries = [value] if isinstance(value, str) else value
        if not isinstance(entries, list) or not all(isinstance(entry, str) and entry for entry in entries):
            raise self.error(f"{key}: expected a text or a list of texts, got {value!r}", key)
        if key in self.values and not entries:
            raise self.error(f"{key}: expected at least one, got none", key)
        return tuple(dict.fromkeys(entries))


def suggestion(word: str, known: Iterable[str]) -> str:
    """`did you mean …?`, or what there is."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    some = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"expected {some}" if names else "there are none"
