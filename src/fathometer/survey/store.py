"""The results folder of a survey: soundings, failures, work under way. Nothing in it is ever executed.

NAME-ADDRESS.json         a sounding; the address is a hash of everything that decides its values
failed/NAME-ADDRESS.json  why one could not be taken
broken/…                  files that could not be read, set aside
pending/ADDRESS…          claims, finished batches and ranges of soundings that are not finished

A name is for people: files are found by their address, whatever stands before it.
"""

from __future__ import annotations

import json
import re
import traceback
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from fathometer.errors import InputError
from fathometer.results.provenance import now
from fathometer.results.sounding import Sounding
from fathometer.results.sounding_file import from_json, to_json
from fathometer.results.standard_json import strict_json
from fathometer.survey.folders import Folder, FolderError, open_folder
from fathometer.survey.ranges import Range
from fathometer.survey.tasks import Task, labelled, options_of
from fathometer.survey.wording import in_words_of_a_plan

Standing: TypeAlias = Literal["finished", "under way", "failed", "to do"]

_FAILURE = "fathometer.failure"
_ADDRESS = re.compile(r"(?:^|-)([0-9a-f]{24})\.json$")


@dataclass(frozen=True)
class Failure:
    """Why a sounding could not be taken.

    Attributes:
        title: which one.
        kind: the class of the error.
        message: its text.
        trace: where it came from.
        date: when, UTC.
        run: the options of the plan's `[run]` then; with others it is tried again.
    """

    title: str
    kind: str
    message: str
    trace: str = ""
    date: str = ""
    run: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, error: BaseException, task: Task) -> Failure:
        """What an error says."""
        message = in_words_of_a_plan(str(error).strip()) or type(error).__name__
        trace = "".join(traceback.format_exception(error))
        return cls(task.title, type(error).__name__, message[:2000], trace[-4000:], now(), options_of(task))


class Store:
    """The results of surveys in a folder, by their address."""

    def __init__(self, folder: str | Path) -> None:
        self.folder: Folder = open_folder(folder)
        self._known: dict[str, dict[str, str]] = {}

    def sounding(self, task: Task) -> Sounding | None:
        """The sounding, if it is finished. A file that is broken is set aside, with a warning."""
        name = self._named(task)
        return None if name is None else self._read(name, lambda found: _check(found, task))

    def keep(self, task: Task, sounding: Sounding) -> None:
        """Keep a finished sounding, and then forget the work that led to it."""
        self.folder.write(f"{task.stem}.json", to_json(sounding))
        self._forget(task)

    def check_writable(self) -> None:
        """An error if nothing can be written: better before an hour of work than after it."""
        self.folder.try_writing()

    def tidy(self, tasks: Iterable[Task]) -> None:
        """Remove what a survey that was killed has left: files half written, work on finished soundings."""
        self.folder.tidy()
        left = [name for ending in (".json", ".journal") for name in self.folder.names("pending", ending)]
        left += self.folder.names("failed")
        addresses = {part for name in left for part in re.findall("[0-9a-f]{24}", name)}
        for task in tasks:
            if task.address not in addresses or self._named(task) is None:
                continue
            with self.claimed(task) as mine:
                if mine and self.sounding(task) is not None:
                    self._forget(task)

    def relabel(self, task: Task, sounding: Sounding) -> bool:
        """Write a kept sounding anew if the plan has other names or facts for it; its values stay."""
        fresh = labelled(sounding, task)
        if fresh.provenance == sounding.provenance:
            return False
        self.folder.write(self._named(task) or f"{task.stem}.json", to_json(fresh))
        return True

    def failure(self, task: Task) -> Failure | None:
        """Why the sounding could not be taken with these options, if so."""
        name = self._named(task, "failed/")
        try:
            content: Any = strict_json((name and self.folder.read(name)) or "null")
            if not isinstance(content, dict) or content.pop("schema", None) != _FAILURE:
                return None
            run = content.pop("run", None)
            found = Failure(**{key: str(value) for key, value in content.items()}, run=run)
        except (ValueError, TypeError, RecursionError, IsADirectoryError):
            return None  # a failure that cannot be read is none: the sounding is tried again
        return found if found.run == options_of(task) else None

    def fail(self, task: Task, failure: Failure) -> None:
        """Record why a sounding could not be taken."""
        name = self._named(task, "failed/") or f"failed/{task.stem}.json"
        text = json.dumps({"schema": _FAILURE, **asdict(failure)}, indent=1) + "\n"
        self._make_way(name)
        self.folder.write(name, text)

    def standing(self, task: Task) -> Standing:
        """How far it is. Nothing is changed; a broken file counts as to do, with a warning."""
        name = self._named(task)
        try:
            if name is not None and self._parsed(name, lambda found: _check(found, task)) is not None:
                return "finished"
        except InputError as error:
            warnings.warn(f"{self.folder}/{name}: will be measured again: {error}", stacklevel=2)
        if self.folder.is_claimed(_claim(task)):
            return "under way"
        return "to do" if self.failure(task) is None else "failed"

    def begun(self, tasks: Iterable[Task]) -> dict[str, str]:
        """By address, what is finished of soundings that are not: `3 batches`, `2 ranges`."""
        found = {}
        ranges = Counter(name.partition(".")[0] for name in self.folder.names("pending"))
        for task in tasks:
            counts = {"batch": self._batches(task), "range": ranges[task.address]}
            words = [f"{count} {name}{_ending(name, count)}" for name, count in counts.items() if count]
            if words:
                found[task.address] = " and ".join(words)
        return found

    def claimed(self, task: Task) -> AbstractContextManager[bool]:
        """A context that is true if no other survey is at work on the sounding, and false otherwise."""
        return self.folder.claimed(_claim(task))

    def journal(self, task: Task) -> Path | None:
        """Where finished batches are kept until the sounding is; none where that is not on this machine."""
        return self.folder.local(_journal(task))

    def drop_journal(self, task: Task, reason: str) -> None:
        """Set aside a journal that does not fit."""
        self._set_aside(_journal(task), reason)

    def part(self, task: Task, part: Range) -> Sounding | None:
        """A range of batches that was finished before."""
        return self._read(_part_name(task, part), lambda found: _check_part(found, task, part))

    def keep_part(self, task: Task, part: Range, text: str) -> None:
        """Keep a finished range of batches until the sounding is finished."""
        self.folder.write(_part_name(task, part), text)

    def drop_part(self, task: Task, part: Range, reason: str) -> None:
        """Set aside a range that does not fit."""
        self._set_aside(_part_name(task, part), reason)

    def forget_work(self, task: Task) -> None:
        """Remove finished batches and ranges."""
        self.folder.remove(_journal(task))
        for name in self.folder.names("pending"):
            if name.startswith(f"{task.address}."):
                self.folder.remove(f"pending/{name}")

    def _forget(self, task: Task) -> None:
        """Remove what there is beside a finished sounding."""
        failed = self._named(task, "failed/")
        if failed is not None:
            self.folder.remove(failed)
        self.forget_work(task)

    def soundings(self) -> list[tuple[str, Sounding]]:
        """All that are finished, by the name of their file; a broken one is left out, with a warning."""
        found = []
        for name in self.folder.names():
            try:
                sounding = self._parsed(name, check_labels)
            except (InputError, FolderError) as error:
                warnings.warn(f"left out: {self.folder}/{error}", stacklevel=2)
                continue
            if sounding is not None:
                found.append((name, sounding))
        return found

    def _batches(self, task: Task) -> int:
        """How many are in the journal, which has a line for each after the first."""
        try:
            return max((self.folder.read(_journal(task)) or "").count("\n") - 1, 0)
        except IsADirectoryError:
            return 0

    def _named(self, task: Task, below: str = "") -> str | None:
        """The name of the file with the address of the task, whatever stands before it."""
        usual = f"{below}{task.stem}.json"
        if self.folder.has(usual):
            return usual
        known = self._known.get(below, {}).get(task.address)
        if known is not None and self.folder.has(known):
            return known
        names = self.folder.names(below.rstrip("/"))
        self._known[below] = {
            found[1]: f"{below}{name}" for name in names if (found := _ADDRESS.search(name))
        }
        return self._known[below].get(task.address)

    def _parsed(self, name: str, check: Callable[[Sounding], None]) -> Sounding | None:
        """The sounding in a file, if there is one. It is here alone that files are judged."""
        try:
            text = self.folder.read(name)
        except IsADirectoryError as error:
            raise InputError(f"{name}: expected a file, got a folder") from error
        if text is None:
            return None
        found = from_json(text, name)
        try:
            check(found)
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
        return found

    def _read(self, name: str, check: Callable[[Sounding], None]) -> Sounding | None:
        try:
            return self._parsed(name, check)
        except InputError as error:
            self._set_aside(name, str(error))
            return None

    def _make_way(self, name: str) -> None:
        """Set aside a folder that stands where a file belongs."""
        try:
            self.folder.read(name)
        except IsADirectoryError:
            self._set_aside(name, "expected a file, got a folder")

    def _set_aside(self, name: str, reason: str) -> None:
        stem, _, ending = name.rpartition("/")[2].rpartition(".")
        place = f"broken/{stem}-{now().replace(':', '')[:17]}-{uuid.uuid4().hex[:4]}.{ending}"
        self.folder.move(name, place)
        warnings.warn(
            f"{self.folder}/{name}: set aside as {place} and measured again: {reason}", stacklevel=4
        )


def check_labels(sounding: Sounding) -> None:
    """Refuse a sounding whose labels are not as `labelled` writes them; those of `measure` have none."""
    facts = sounding.provenance
    for where, entries, name in (
        ("settings", facts.settings, "survey"),
        ("settings", facts.settings, "reduction"),
        ("model", facts.model, "facts"),
    ):
        if not isinstance(entries.get(name), dict | None):
            raise InputError(f"broken, {where}: expected a table as {name}, got {entries[name]!r}")


def _check(sounding: Sounding, task: Task) -> None:
    check_labels(sounding)
    if (sounding.provenance.settings.get("survey") or {}).get("address") != task.address:
        raise InputError("it is not the sounding that its name says")


def _check_part(sounding: Sounding, task: Task, part: Range) -> None:
    _check(sounding, task)
    facts = sounding.provenance
    counts = [facts.data.get(name) for name in ("samples_measured", "samples_left_over", "skipped")]
    if facts.settings.get("first_batch") != part.first or not all(isinstance(count, int) for count in counts):
        raise InputError("it is not the range that its name says")


def _ending(name: str, count: int) -> str:
    return "" if count == 1 else "es" if name.endswith("h") else "s"


def _claim(task: Task) -> str:
    return f"pending/{task.address}.lock"


def _journal(task: Task) -> str:
    return f"pending/{task.address}.journal"


def _part_name(task: Task, part: Range) -> str:
    last = "end" if part.batches is None else part.first + part.batches
    return f"pending/{task.address}.{part.first}-{last}{'-all-read' if part.reads_all else ''}.json"
