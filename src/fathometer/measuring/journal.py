"""The finished batches of a measurement, in memory and on disk: after an interruption it can resume."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from fathometer.capture import Site
from fathometer.errors import InputError
from fathometer.measuring.scores import Scores
from fathometer.results.files import StoreError, complete_file, remove_leftovers
from fathometer.results.provenance import Provenance, different_names

_SCHEMA = "fathometer.measuring.journal/2"


class _Head(msgspec.Struct):
    """The first line."""

    schema: Literal["fathometer.measuring.journal/2"]
    identity: dict[str, Any]


@dataclass(frozen=True)
class Reading:
    """The values of all gauges at one site: of `n` samples with `d` features."""

    site: Site
    n: int
    d: int
    values: dict[str, float]


@dataclass(frozen=True)
class FinishedBatch:
    """The readings at all sites for one batch of samples.

    Attributes:
        batch: its number, from 0.
        rows: the readings, in order of depth.
        scores: what its labels say of the outputs.
        hsic: what the similarity of every two of these sites is computed from, if a map was asked for
            (`fathometer.measuring.similarity`).
        label: that of all its samples, where data are split by label.
    """

    batch: int
    rows: list[Reading]
    scores: Scores | None = None
    hsic: bytes = b""
    label: str | None = None


class JournalError(InputError):
    """The file is not a journal, or belongs to another measurement; remove it to start again."""


class Journal:
    """A file with one line for each finished batch, after a line with the identity of the measurement.

    A line that was cut short by the interruption is dropped: its batch is measured again. How many batches
    are wanted is no part of the identity, so that more can be added later. The journal has no lock; callers
    that let several processes work in one folder lock the sounding.
    """

    def __init__(self, path: Path, identity: Provenance) -> None:
        self._path, self._saved = path, time.monotonic()
        self._identity = {name: value for name, value in identity.identity().items() if name != "batches"}
        self.batches: list[FinishedBatch] = []
        if not path.parent.is_dir():
            raise StoreError(f"{path}: cannot be written, there is no such folder")
        remove_leftovers(path.parent, path)
        if path.exists():
            self._read()
            self._write()  # without a line that was cut short

    def add(self, batch: FinishedBatch) -> None:
        """Keep a finished batch. From the second on it survives a loss of power, if it took over a second."""
        self.batches.append(batch)
        begun, self._saved = self._saved, time.monotonic()
        try:
            with self._path.open("r+", encoding="utf-8") as file:
                file.seek(0, os.SEEK_END)
                file.write(json.dumps(msgspec.to_builtins(batch)) + "\n")
                file.flush()
                if self._saved - begun > 1:
                    os.fsync(file.fileno())
        except FileNotFoundError:  # the first one; or somebody has removed the file
            self._write()
        except OSError as error:
            raise StoreError(f"{self._path}: cannot be written ({error.strerror})") from error

    def _read(self) -> None:
        try:
            head, *lines = self._path.read_text("utf-8").splitlines(keepends=True)
            identity = msgspec.convert(json.loads(head), _Head).identity
        except (ValueError, OSError, RecursionError) as error:  # a `ValidationError` is a `ValueError`
            raise JournalError(
                f"{self._path}: not the journal of a measurement, or of another version; "
                "remove it to start again"
            ) from error
        if differing := different_names(identity, self._identity):
            raise JournalError(
                f"{self._path}: belongs to another measurement (other {', '.join(differing)}); "
                "use the same options, or remove it to start again"
            )
        for line in lines:
            with suppress(
                ValueError, RecursionError, msgspec.ValidationError
            ):  # json: gauges may be inf or NaN
                batch = msgspec.convert(json.loads(line), FinishedBatch) if line.endswith("\n") else None
                is_whole = batch is not None and len(batch.hsic) in (0, 8 * len(batch.rows) ** 2)
                if batch is not None and is_whole and batch.batch == len(self.batches):
                    self.batches.append(batch)
                    continue
            break

    def _write(self) -> None:
        lines = [{"schema": _SCHEMA, "identity": self._identity}, *map(msgspec.to_builtins, self.batches)]
        with complete_file(self._path) as part:
            part.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
