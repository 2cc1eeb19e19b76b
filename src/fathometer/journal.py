"""What a measurement has finished so far, on disk, so that it can go on after an interruption."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from fathometer.errors import InputError
from fathometer.files import complete_file

_SCHEMA = "fathometer.journal/1"
_SITE = {"module": str, "operator": str, "call": int, "own": bool}


class JournalError(InputError):
    """The journal is not one, or belongs to another measurement; without it, measuring begins anew."""


class Journal:
    """A file with a line for each finished batch, after a line that says what is being measured.

    A line that was cut short by the interruption is dropped: its batch is measured again.
    """

    def __init__(self, path: Path, fingerprint: dict[str, Any], first_batch: int = 0) -> None:
        self._path, self._first = path, first_batch
        self._fingerprint = {**fingerprint, "first_batch": first_batch}
        self.batches: list[dict[str, Any]] = []
        if not path.parent.is_dir():
            raise InputError(f"{path}: cannot be written, there is no such folder")
        if path.exists():
            self._read()
            self._write_anew()

    def add(self, batch: dict[str, Any]) -> None:
        """Keep a finished batch. From the second on it survives a loss of power, too."""
        self.batches.append(batch)
        if len(self.batches) == 1:
            self._write_anew()
            return
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(batch) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _read(self) -> None:
        try:
            head, *lines = self._path.read_text("utf-8").splitlines(keepends=True)
            written = json.loads(head)
            if not isinstance(written, dict) or written.pop("schema", None) != _SCHEMA:
                raise ValueError("other schema")
        except (ValueError, OSError, RecursionError) as error:
            raise JournalError(
                f"{self._path}: not the journal of a measurement; remove it to begin anew"
            ) from error
        wanted = json.loads(json.dumps(self._fingerprint))
        if written != wanted:
            differing = [key for key in {**written, **wanted} if written.get(key) != wanted.get(key)]
            raise JournalError(
                f"{self._path}: belongs to another measurement (other {', '.join(sorted(differing))}); "
                "measure as then, or remove it to begin anew"
            )
        for line in lines:
            batch: Any = None
            with suppress(ValueError, RecursionError):
                batch = json.loads(line) if line.endswith("\n") else None
            if not _is_batch(batch) or batch["batch"] != self._first + len(self.batches):
                break
            self.batches.append(batch)

    def _write_anew(self) -> None:
        lines = [{"schema": _SCHEMA, **self._fingerprint}, *self.batches]
        with complete_file(self._path) as part:
            part.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def _is_batch(content: Any) -> bool:
    """Whether it is a batch as `measure` writes it."""
    return (
        isinstance(content, dict)
        and isinstance(content.get("batch"), int)
        and isinstance(content.get("rows"), list)
        and all(map(_is_row, content["rows"]))
    )


def _is_row(row: Any) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("site"), dict):
        return False
    values = row.get("values")
    return (
        all(isinstance(row["site"].get(name), kind) for name, kind in _SITE.items())
        and all(isinstance(row.get(name), int) for name in ("n", "d"))
        and isinstance(values, dict)
        and all(isinstance(value, int | float) for value in values.values())
    )
