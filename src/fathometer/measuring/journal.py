"""What a measurement has finished so far, on disk, so that it can go on after an interruption."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fathometer.errors import InputError
from fathometer.results.files import WriteError, complete_file, remove_leftovers
from fathometer.results.locks import locked

_SCHEMA = "fathometer.measuring.journal/1"
_SITE = {"module": str, "operator": str, "call": int, "own": bool, "order": int}


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
        if path.exists():
            self._read()

    def mend(self) -> None:
        """Drop a line that was cut short."""
        if self._path.exists():
            self._write_anew()

    def add(self, batch: dict[str, Any]) -> None:
        """Keep a finished batch. From the second on it survives a loss of power, too."""
        self.batches.append(batch)
        try:
            with self._path.open("r+", encoding="utf-8") as file:
                file.seek(0, os.SEEK_END)
                file.write(json.dumps(batch) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except FileNotFoundError:  # the first one; or somebody has removed the file
            self._write_anew()
        except OSError as error:
            raise WriteError(f"{self._path}: cannot be written ({error.strerror})") from error

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
            batch: Any = None  # not by `strict_json`: gauges may be inf or NaN
            with suppress(ValueError, RecursionError):
                batch = json.loads(line) if line.endswith("\n") else None
            if not _is_batch(batch) or batch["batch"] != self._first + len(self.batches):
                break
            self.batches.append(batch)

    def _write_anew(self) -> None:
        lines = [{"schema": _SCHEMA, **self._fingerprint}, *self.batches]
        with complete_file(self._path) as part:
            part.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


@contextmanager
def open_journal(path: Path, fingerprint: dict[str, Any], first_batch: int = 0) -> Iterator[Journal]:
    """A journal for as long as the context lasts, in which no other process can have it."""
    if not path.parent.is_dir():
        raise WriteError(f"{path}: cannot be written, there is no such folder")
    Journal(path, fingerprint, first_batch)  # one that does not fit is refused before anything is touched
    with locked(path.with_name(f"{path.name}.lock")) as mine:
        if not mine:
            raise InputError(
                f"{path}: another process is measuring with it; let it end, or give another file"
            )
        remove_leftovers(path.parent, path)
        journal = Journal(path, fingerprint, first_batch)
        journal.mend()
        yield journal


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
