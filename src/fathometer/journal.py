"""What a measurement has finished so far, on disk, so that it can go on after an interruption."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from fathometer.errors import InputError
from fathometer.files import complete_file

_SCHEMA = "fathometer.journal/1"


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
        """Keep a finished batch, for good."""
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
            if written.pop("schema") != _SCHEMA:
                raise ValueError("other schema")
        except (ValueError, KeyError, AttributeError, OSError) as error:
            raise InputError(
                f"{self._path}: not the journal of a measurement; remove it to begin anew"
            ) from error
        wanted = json.loads(json.dumps(self._fingerprint))
        if written != wanted:
            differing = [key for key in {**written, **wanted} if written.get(key) != wanted.get(key)]
            raise InputError(
                f"{self._path}: belongs to another measurement (other {', '.join(sorted(differing))}); "
                "measure as then, or remove it to begin anew"
            )
        for line in lines:
            try:
                batch = json.loads(line) if line.endswith("\n") else None
            except ValueError:
                batch = None
            if not isinstance(batch, dict) or batch.get("batch") != self._first + len(self.batches):
                break
            self.batches.append(batch)

    def _write_anew(self) -> None:
        lines = [{"schema": _SCHEMA, **self._fingerprint}, *self.batches]
        with complete_file(self._path) as part:
            part.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
