"""The results folder of a survey, local or at a URL. Nothing in it is ever executed.

NAME-ADDRESS.json         a sounding; the address is a hash of everything that decides its values
failed/NAME-ADDRESS.json  why a sounding could not be taken
broken/…                  files that could not be read, moved out of the way
pending/ADDRESS…          locks and finished batches of soundings in progress

The name is for people: files are found by their address, whatever precedes it.
"""

from __future__ import annotations

import json
import re
import traceback
import uuid
import warnings
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from fathometer.errors import InputError
from fathometer.results.files import strict_json
from fathometer.results.provenance import now
from fathometer.results.sounding import Sounding, from_json, to_json
from fathometer.results.store import Store as Files
from fathometer.survey.tasks import Task, labelled

Status: TypeAlias = Literal["finished", "in progress", "failed", "to do"]

_FAILURE = "fathometer.failure"
_DIGITS = re.compile("[0-9a-f]{24}")
_ADDRESS = re.compile(rf"(?:^|-)({_DIGITS.pattern})\.json$")


@dataclass(frozen=True)
class Failure:
    """Why a sounding could not be taken.

    Attributes:
        title: which sounding.
        kind: class of the error.
        message: its text.
        trace: its traceback.
        date: when, UTC.
        run: the options of `[run]` at that time; with other options the sounding is tried again.
    """

    title: str
    kind: str
    message: str
    trace: str = ""
    date: str = ""
    run: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, error: BaseException, task: Task) -> Failure:
        """Describe an error."""
        message = str(error).strip() or type(error).__name__
        trace = "".join(traceback.format_exception(error))
        return cls(task.title, type(error).__name__, message[:2000], trace[-4000:], now(), asdict(task.run))


class Store:
    """Soundings and failures of surveys, by their address.

    Args:
        place: a path, or a URL that fsspec opens.
    """

    def __init__(self, place: str | Path) -> None:
        self.files = Files(place)
        if self.files.exists() and not self.files.is_folder():
            raise InputError(f"{place}: expected a folder for results, got a file; give another name")
        self._names: dict[str, dict[str, str]] = {}

    def sounding(self, task: Task) -> Sounding | None:
        """Return the sounding if it is finished. A broken file is moved to `broken/`, with a warning."""
        name = self._name(task)
        try:
            return self._read(name, task)
        except InputError as error:
            self._set_aside(name, str(error))
            return None

    def is_finished(self, task: Task) -> bool:
        """Say whether there is a file of the sounding, without reading it."""
        return self.files.exists(self._name(task))

    def write_sounding(self, task: Task, sounding: Sounding) -> None:
        """Write a finished sounding, and then remove the work that led to it.

        One that is measured again within a second need not survive a loss of power.
        """
        durable = sounding.provenance.seconds > 1
        self.files.write(f"{task.stem}.json", to_json(sounding).encode(), durable=durable)
        self._names.get("", {}).pop(task.address, None)
        self._clean(task)

    def relabel(self, task: Task, sounding: Sounding) -> None:
        """Write a finished sounding again if the plan has other names or facts for it; its values stay."""
        changed = labelled(sounding, task)
        if changed.provenance != sounding.provenance:
            self.files.write(self._name(task), to_json(changed).encode())

    def failure(self, task: Task) -> Failure | None:
        """Return why the sounding could not be taken with these options of `[run]`, if so."""
        try:
            content: Any = strict_json(self.files.read(self._name(task, "failed/")) or "null")
            if not isinstance(content, dict) or content.pop("schema", None) != _FAILURE:
                return None
            run = content.pop("run", None)
            found = Failure(**{key: str(value) for key, value in content.items()}, run=run)
        except (ValueError, TypeError, RecursionError):
            return None  # the sounding is tried again
        if not isinstance(run, dict):
            return None
        shared = asdict(task.run).keys() & run.keys()  # another version may have other options
        return found if all(run[name] == getattr(task.run, name) for name in shared) else None

    def write_failure(self, task: Task, failure: Failure) -> None:
        """Record why a sounding could not be taken."""
        text = json.dumps({"schema": _FAILURE, **asdict(failure)}, indent=1) + "\n"
        self.files.write(self._name(task, "failed/"), text.encode())

    def status(self, task: Task) -> Status:
        """Return how far a sounding is, without changing anything. A broken file counts as to do."""
        try:
            if self._read(self._name(task), task) is not None:
                return "finished"
        except InputError as error:
            warnings.warn(f"{error}; it will be measured again", stacklevel=2)
        if self.files.is_locked(_lock(task)):
            return "in progress"
        return "to do" if self.failure(task) is None else "failed"

    def finished_batches(self, task: Task) -> int:
        """Return how many batches of an unfinished sounding are kept, in a local folder."""
        content = self.files.read(_journal(task)) if self.files.local else None
        return max((content or b"").count(b"\n") - 1, 0)  # the first line of a journal says what is measured

    def claimed(self, task: Task) -> AbstractContextManager[bool]:
        """Return a context that yields False if another survey in this folder measures the sounding."""
        return self.files.lock(_lock(task))

    def journal(self, task: Task) -> Path | None:
        """Return where finished batches are kept until the sounding is finished, in a local folder."""
        if self.files.local is None:
            return None
        path = self.files.local / _journal(task)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def drop_journal(self, task: Task, reason: str) -> None:
        """Move a journal that does not fit out of the way."""
        self._set_aside(_journal(task), reason)

    def check_writable(self) -> None:
        """Raise an error if nothing can be written: better before an hour of work than after it."""
        self.files.try_writing("pending/probe")

    def remove_leftovers(self, tasks: Iterable[Task]) -> None:
        """Remove what killed surveys have left: temporary files, and work on finished soundings."""
        parts = [(folder, name) for folder in ("", "failed/") for name in self.files.leftovers(folder)]
        left = self.files.names("pending", (".journal", ".lock")) + self.files.names("failed")
        addresses = {part for name in (*left, *(name for _, name in parts)) for part in _DIGITS.findall(name)}
        for task in tasks:
            if task.address not in addresses:
                continue
            with self.claimed(task) as mine:
                if not mine:
                    continue
                for folder, name in parts:
                    if task.address in name:  # nobody writes it: we hold the lock
                        self.files.remove(f"{folder}{name}")
                if self.sounding(task) is not None:
                    self._clean(task)

    def _clean(self, task: Task) -> None:
        """Remove what a finished sounding leaves behind."""
        self.files.remove(self._name(task, "failed/"))
        self.files.remove(_journal(task))

    def _name(self, task: Task, folder: str = "") -> str:
        """Return the name of the file with the address of the task, or the name that it is going to have."""
        if folder not in self._names:
            names = self.files.names(folder.rstrip("/"))
            self._names[folder] = {
                found[1]: f"{folder}{name}" for name in names if (found := _ADDRESS.search(name))
            }
        return self._names[folder].get(task.address, f"{folder}{task.stem}.json")

    def _read(self, name: str, task: Task) -> Sounding | None:
        content = self.files.read(name)
        if content is None:
            return None
        path = self.files.path(name)
        found = from_json(content, path)
        labels = found.provenance.settings.get("survey")
        if not isinstance(labels, dict) or labels.get("address") != task.address:
            raise InputError(f"{path}: it is not the sounding that its name says")
        return found

    def _set_aside(self, name: str, reason: str) -> None:
        stem, _, ending = name.rpartition("/")[2].rpartition(".")
        new_name = f"broken/{stem}-{now().replace(':', '')[:17]}-{uuid.uuid4().hex[:4]}.{ending}"
        self.files.move(name, new_name)
        self._names.clear()
        warnings.warn(
            f"{self.files.path(name)}: moved to {new_name} and measured again: {reason}", stacklevel=4
        )


def _lock(task: Task) -> str:
    return f"pending/{task.address}.lock"


def _journal(task: Task) -> str:
    return f"pending/{task.address}.journal"
