"""Processes killed at every point where the disk changes, and taken up again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from soak.faults.children import Children, children
from soak.faults.commands import COMMANDS, MEASURE, SURVEY, TRAIN, Command
from soak.faults.tally import Tally, Undisturbed, fresh, outcome, spread, undisturbed
from soak.program import Effort, Outcome, Program


def _run(effort: Effort) -> Outcome:
    commands = COMMANDS if effort == "full" else (SURVEY, TRAIN)
    tallies = []
    with children() as processes:
        for command in commands:
            reference = undisturbed(command, processes)
            points = spread(reference.ended.files, 60 if effort == "full" else 2)
            tallies.append(
                _tally(reference, processes, "before an operation on a file", "kill_before", points)
            )
            sizes = spread(_largest(command), 20 if effort == "full" else 1)
            tallies.append(_tally(reference, processes, "in the middle of a write", "kill_past", sizes))
    notes = [
        "The points are operations on files: opening to write, renaming, removing, making a folder; all of "
        "them, or 60 spread over the work. Between two of them nothing changes that the next process could "
        "see. In the middle of a write: the system ends the process once a file grows past a size.",
        "Lost: values of the undisturbed result that are not there, bit for bit. Doubled: values that are "
        "there beside them, and work done twice that was finished. Files left over are a failure, too.",
    ]
    return outcome(tallies, notes)


def _tally(
    reference: Undisturbed, processes: Children, where: str, fault: str, points: Iterable[int]
) -> Tally:
    tally = Tally(f"`{reference.command.name}`, killed {where}")
    for point in points:
        _trial(reference, processes, tally, {fault: point})
    return tally


def _trial(
    reference: Undisturbed, processes: Children, tally: Tally, fault: dict[str, Any], **later: Any
) -> None:
    command = reference.command
    folder = fresh(command, processes)
    first = processes.run(command.first, folder, **fault)
    where = " ".join(f"{name} {value}" for name, value in fault.items())
    if first.code == 0 and "kill_past" in fault:
        return  # no file has become so large
    if first.code >= 0:
        tally.add(where, [f"it was to be killed, but ended with {first.code} ({first.last_words})"])
        return
    second = processes.run(command.again, folder, **later)
    reference.compare(tally, where, folder, second, first.work + second.work)


def _largest(command: Command) -> int:
    """Bytes; a bit more than the largest file has."""
    return 6000 if command in (MEASURE, SURVEY) else 40000


KILLED = Program(
    "killed",
    "Killed processes",
    "`measure`, `survey`, `leaky sweep` and `leaky train` are killed (`kill -9`) at every point where the "
    "disk changes, and in the middle of writes; then the same command goes on. It is a failure if the "
    "result is not that of an undisturbed run bit for bit, if finished work is done again, or if files are "
    "left over.",
    _run,
)
