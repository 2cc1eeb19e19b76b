"""The steps of a linearization on disk, so that an interrupted one can resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from fathometer.measuring.journal import JournalError
from fathometer.results.files import complete_file
from fathometer.results.provenance import Provenance, different_names

Row: TypeAlias = "dict[str, Any]"
"""A row of the curve."""

_SCHEMA = "fathometer.linearizing.journal/1"


class Step(NamedTuple):
    """One step: its row of the curve, and what was known of the cost of each site when it was chosen."""

    row: Row
    costs: dict[str, float]


class Journal:
    """Keeps a line for each step after one with the identity of the work; without a path, only in memory.

    Attributes:
        steps: those of an earlier run, which need not be measured again.
    """

    def __init__(self, path: Path | None, identity: Provenance) -> None:
        self._path = path
        self._lines: list[Any] = [{"schema": _SCHEMA, "identity": identity.identity()}]
        self.steps: list[Step] = []
        if path is None or not path.exists():
            return
        try:
            head, *lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            known = head["identity"] if head["schema"] == _SCHEMA else None
            steps = msgspec.convert(lines, list[Step])
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise JournalError(f"{path}: not a journal of `linearize`; give another name") from error
        if len(steps) < 2:  # nothing was replaced yet
            return
        if known is None or (differing := different_names(known, identity.identity())):
            what = "another version" if known is None else f"other {', '.join(differing)}"
            raise JournalError(
                f"{path}: belongs to another run ({what}); use the same options, or remove it to start again"
            )
        self.steps = steps

    def add(self, step: Step) -> None:
        """Keep a step."""
        self._lines.append(step)
        if self._path is not None and len(self._lines) - 1 > len(self.steps):
            with complete_file(self._path) as part:
                part.write_text("".join(json.dumps(line) + "\n" for line in self._lines), "utf-8")
