"""The results folder of a survey: soundings, failures, work under way. Nothing in it is ever executed.

NAME-ADDRESS.json         a sounding; the address is a hash of everything that decides its values
failed/NAME-ADDRESS.json  why one could not be taken
broken/…                  files that could not be read, set aside
pending/…                 claims, finished batches and ranges of soundings that are not finished
"""

from __future__ import annotations

import json
import traceback
import warnings
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fathometer.errors import InputError
from fathometer.provenance import now
from fathometer.sounding import Sounding
from fathometer.sounding_file import from_json, to_json
from fathometer.survey.folders import Folder, open_folder
from fathometer.survey.ranges import Range
from fathometer.survey.tasks import Task

_FAILURE = "fathometer.failure"


@dataclass(frozen=True)
class Failure:
    """Why a sounding could not be taken.

    Attributes:
        title: which one.
        kind: the class of the error.
        message: its text.
        trace: where it came from.
        date: when, UTC.
    """

    title: str
    kind: str
    message: str
    trace: str = ""
    date: str = ""

    @classmethod
    def of(cls, error: BaseException, title: str) -> Failure:
        """What an error says."""
        message = str(error).strip() or type(error).__name__
        trace = "".join(traceback.format_exception(error))
        return cls(title, type(error).__name__, message[:2000], trace[-4000:], now())


class Store:
    """The results of surveys in a folder, by their address."""

    def __init__(self, folder: str | Path) -> None:
        self.folder: Folder = open_folder(folder)

    def sounding(self, task: Task) -> Sounding | None:
        """The sounding, if it is finished. A file that is broken is set aside, with a warning."""
        name = f"{task.stem}.json"
        found = self._read(name)
        if found is not None and found.provenance.settings.get("survey", {}).get("address") != task.address:
            self._set_aside(name, "it is not the sounding that its name says")
            return None
        return found

    def has(self, task: Task) -> bool:
        """Whether there is a file of that name; it is not opened."""
        return self.folder.has(f"{task.stem}.json")

    def keep(self, task: Task, sounding: Sounding) -> None:
        """Keep a finished sounding, and forget the work that led to it."""
        self.folder.write(f"{task.stem}.json", to_json(sounding))
        self.folder.remove(f"failed/{task.stem}.json")
        self._forget_work(task)

    def failure(self, task: Task) -> Failure | None:
        """Why the sounding could not be taken, if so."""
        text = self.folder.read(f"failed/{task.stem}.json")
        try:
            content: Any = json.loads(text or "null")
            if not isinstance(content, dict) or content.pop("schema", None) != _FAILURE:
                return None
            return Failure(**{key: str(value) for key, value in content.items()})
        except (ValueError, TypeError, RecursionError):
            return None  # a failure that cannot be read is none: the sounding is tried again

    def fail(self, task: Task, failure: Failure) -> None:
        """Record why a sounding could not be taken."""
        text = json.dumps({"schema": _FAILURE, **asdict(failure)}, indent=1) + "\n"
        self.folder.write(f"failed/{task.stem}.json", text)

    def claimed(self, task: Task) -> AbstractContextManager[bool]:
        """A context that is true if no other survey is at work on the sounding, and false otherwise."""
        claim: AbstractContextManager[bool] = self.folder.claimed(f"pending/{task.stem}.lock")
        return claim

    def journal(self, task: Task) -> Path | None:
        """Where finished batches are kept until the sounding is; none where that is not on this machine."""
        return self.folder.local(f"pending/{task.stem}.journal")

    def part(self, task: Task, part: Range) -> Sounding | None:
        """A range of batches that was finished before."""
        return self._read(_part_name(task, part))

    def keep_part(self, task: Task, part: Range, text: str) -> None:
        """Keep a finished range of batches until the sounding is finished."""
        self.folder.write(_part_name(task, part), text)

    def soundings(self) -> list[tuple[str, Sounding]]:
        """All that are finished, by the name of their file; a broken one is left out, with a warning."""
        found = []
        for name in self.folder.names():
            try:
                found.append((name, from_json(self.folder.read(name) or "", f"{self.folder}/{name}")))
            except InputError as error:
                warnings.warn(f"left out: {error}", stacklevel=2)
        return found

    def _read(self, name: str) -> Sounding | None:
        text = self.folder.read(name)
        if text is None:
            return None
        try:
            return from_json(text, name)
        except InputError as error:
            self._set_aside(name, str(error))
            return None

    def _set_aside(self, name: str, reason: str) -> None:
        stem = name.rpartition("/")[2].removesuffix(".json")
        place = f"broken/{stem}-{now().replace(':', '')[:17]}.json"
        self.folder.move(name, place)
        warnings.warn(
            f"{self.folder}/{name}: set aside as {place} and measured again: {reason}", stacklevel=4
        )

    def _forget_work(self, task: Task) -> None:
        self.folder.remove(f"pending/{task.stem}.journal")
        for name in self.folder.names("pending"):
            if name.startswith(f"{task.stem}."):
                self.folder.remove(f"pending/{name}")


def _part_name(task: Task, part: Range) -> str:
    last = "end" if part.batches is None else part.first + part.batches
    return f"pending/{task.stem}.{part.first}-{last}{'-all-read' if part.reads_all else ''}.json"
