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
    """What the program found; of many failures of one kind, the first five."""
    known = list(tallies)
    failures = [failure for tally in known for failure in tally.failures[:5]]
    return Outcome([tally.row for tally in known], failures, list(notes))


@dataclass(frozen=True)
class Undisturbed:
    """What a command comes to when nothing happens to it."""

    command: Command
    units: Units
    files: frozenset[str]
    ended: Ended

    def compare(self, tally: Tally, where: str, folder: Path, last: Ended, work: int) -> None:
        """Add a trial whose last process should have ended as if nothing had happened.

        `work` is that of all its processes together.
        """
        if last.code != 0:
            tally.add(where, [f"exit code {last.code} in the end ({last.last_words})"])
            return
        try:
            found = self.command.found(folder)
        except (FathometerError, OSError, ValueError) as error:
            tally.add(where, [f"the result cannot be read ({error})"], lost=self.units.total())
            return
        again = max(0, work - self.ended.work - self.command.may_repeat)
        left = files_in(folder) - self.files
        tally.add(
            where,
            [f"left over: {', '.join(sorted(left))}"] if left else [],
            lost=(self.units - found).total(),
            doubled=(found - self.units).total() + again,
        )


def undisturbed(command: Command, processes: Children) -> Undisturbed:
    """Run it once, with nothing in its way."""
    folder = fresh(command, processes)
    ended = processes.run(command.first, folder)
    assert ended.code == 0, ended.printed
    return Undisturbed(command, command.found(folder), files_in(folder), ended)


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
