"""Counting trials: how many ended as if nothing had happened, and what was lost or doubled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from fathometer.errors import FathometerError
from soak.faults.children import Children, Ended
from soak.faults.commands import Command, Units
from soak.program import Outcome, Row


@dataclass
class Tally:
    """A row of the page, and what failed."""

    what: str
    how: str = ""
    tried: int = 0
    survived: int = 0
    lost: int = 0
    doubled: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, where: str, faults: Iterable[str] = (), *, lost: int = 0, doubled: int = 0) -> None:
        """One trial, with everything that went wrong in it."""
        self.tried += 1
        self.lost += lost
        self.doubled += doubled
        wrong = list(faults)
        wrong += [f"{lost} lost"] if lost else []
        wrong += [f"{doubled} doubled"] if doubled else []
        if wrong:
            self.failures.append(f"{self.what}, {where}: {'; '.join(wrong)}")
        else:
            self.survived += 1

    @property
    def row(self) -> Row:
        """For the page."""
        return {
            "what": self.what,
            "tried": self.tried,
            "survived": self.survived,
            "lost": self.lost,
            "doubled": self.doubled,
            "how": self.how,
        }


def outcome(tallies: Iterable[Tally], notes: Iterable[str] = ()) -> Outcome:
    """What the program found."""
    known = list(tallies)
    failures = [failure for tally in known for failure in tally.failures]
    return Outcome([tally.row for tally in known], failures, list(notes))


@dataclass(frozen=True)
class Undisturbed:
    """What a command comes to when nothing happens to it, and where that is."""

    command: Command
    folder: Path
    units: Units
    files: frozenset[str]
    ended: Ended

    def compare(
        self, tally: Tally, where: str, folder: Path, last: Ended, work: int, *, may_repeat: int = 0
    ) -> None:
        """Add a trial whose last process should have ended as if nothing had happened.

        `work` is that of all its processes together; `may_repeat` what of it was interrupted.
        """
        if last.code != 0:
            tally.add(where, [f"exit code {last.code} in the end ({last.last_words})"])
            return
        try:
            found = self.command.found(folder)
        except (FathometerError, OSError, ValueError) as error:
            tally.add(where, [f"the result cannot be read ({error})"], lost=self.units.total())
            return
        again = max(0, work - self.ended.work - may_repeat)
        left = files_in(folder) - self.files
        tally.add(
            where,
            [f"left over: {', '.join(sorted(left))}"] if left else [],
            lost=(self.units - found).total(),
            doubled=(found - self.units).total() + again,
        )

    @property
    def largest(self) -> int:
        """Bytes of the largest file that it leaves."""
        found = self.folder / self.command.out
        return max(path.stat().st_size for path in (found, *found.rglob("*")) if path.is_file())

    def is_there(self, folder: Path) -> bool:
        """Whether the whole result is there."""
        try:
            return self.command.found(folder) == self.units
        except (FathometerError, OSError, ValueError):
            return False


def undisturbed(command: Command, processes: Children) -> Undisturbed:
    """Run it once, with nothing in its way."""
    folder = fresh(command, processes)
    ended = processes.run(command.first, folder)
    assert ended.code == 0, ended.printed
    return Undisturbed(command, folder, command.found(folder), files_in(folder), ended)


def fresh(command: Command, processes: Children) -> Path:
    """A folder with what a command needs, and nothing else."""
    folder = processes.new_folder()
    command.prepare(folder)
    return folder


def files_in(folder: Path) -> frozenset[str]:
    """Everything in a folder, hidden files and empty folders too."""
    return frozenset(str(path.relative_to(folder)) for path in folder.rglob("*"))


def spread(last: int, count: int) -> list[int]:
    """At most `count` whole numbers from 1 to `last`, the ends among them."""
    if count >= last:
        return list(range(1, last + 1))
    return sorted({round(1 + place * (last - 1) / max(count - 1, 1)) for place in range(count)})
