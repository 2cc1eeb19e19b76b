"""Processes killed at points where the disk changes, and taken up again."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from fathometer.errors import FathometerError
from soak.faults.children import Children, children
from soak.faults.commands import COMMANDS, REPRODUCE, SURVEY, SWEEP, TRAIN
from soak.faults.tally import Tally, Undisturbed, fresh, outcome, spread, undisturbed
from soak.program import Effort, Outcome, Program

_OF_A_SWEEP = 60  # points: it has some 240, each of which takes longer than those of the others
_AT_THE_END = 16  # operations of a second `reproduce`: the new result takes the place of the old one


def _run(effort: Effort) -> Outcome:
    commands = (*COMMANDS, REPRODUCE) if effort == "full" else (SURVEY, TRAIN)
    tallies = []
    with children() as processes:
        for command in commands:
            reference = undisturbed(command, processes)
            there = reference.ended.files
            some = (_OF_A_SWEEP if command is SWEEP else there) if effort == "full" else 2
            tallies.append(_before(reference, processes, spread(there, some)))
            sizes = spread(reference.largest - 1, 20 if effort == "full" else 1)
            tallies.append(_within(reference, processes, sizes))
            if command is REPRODUCE:
                tallies.append(_replaced(reference, processes))
    notes = [
        "The points are operations on files: opening to write, renaming, removing, making a folder. How many "
        "of them were tried stands in the table; where it is not all, they are evenly spread. Between two of "
        "them nothing changes that the next process could see, but for what is written to an open file.",
        "In the middle of a write: the system does not let a file grow past a size, and ends the process "
        "that tries (`SIGXFSZ`). The sizes are evenly spread from 1 byte to the largest file of the result.",
        "Training writes a checkpoint after every segment here; as shipped, there is one every ten seconds, "
        "or more rarely where it takes long to write, so that more work is done again after a kill.",
        "Lost: values of the undisturbed result that are not there, bit for bit. Doubled: values that are "
        "there beside them, and work done twice beyond the batch, or the segments, under way. Files left "
        "over are a failure, too, and so is a process that was not killed.",
    ]
    return outcome(tallies, notes)


def _before(reference: Undisturbed, processes: Children, points: Iterable[int]) -> Tally:
    known = list(points)
    share = "all" if len(known) == reference.ended.files else f"{len(known)} of"
    tally = Tally(
        f"`{reference.command.name}`, killed before an operation on a file",
        f"{share} {reference.ended.files} operations",
    )
    for point in known:
        _trial(reference, processes, tally, f"before operation {point}", kill_before=point)
    return tally


def _within(reference: Undisturbed, processes: Children, sizes: Iterable[int]) -> Tally:
    known = list(sizes)
    tally = Tally(
        f"`{reference.command.name}`, killed in the middle of a write", f"past byte {known[0]} to {known[-1]}"
    )
    for size in known:
        _trial(reference, processes, tally, f"past byte {size}", kill_past=size)
    return tally


def _trial(reference: Undisturbed, processes: Children, tally: Tally, where: str, **fault: int) -> None:
    command = reference.command
    folder = fresh(command, processes)
    first = processes.run(command.first, folder, **fault)
    if not first.was_killed:
        tally.add(where, [f"did not happen: it ended with {first.code} ({first.last_words})"])
        return
    second = processes.run(command.again, folder)
    work = first.work + second.work
    reference.compare(tally, where, folder, second, work, may_repeat=command.may_repeat)


def _replaced(reference: Undisturbed, processes: Children) -> Tally:
    """Killed when the new result takes the place of an earlier one: one of both is there at any moment."""
    command = reference.command
    forced = [*command.first, "--force"]
    last = processes.run(forced, _with_result(reference, processes)).files
    tally = Tally(
        f"`{command.name} --force`, killed with an earlier result there",
        f"the last {_AT_THE_END} of {last} operations",
    )
    for point in range(last - _AT_THE_END + 1, last + 1):
        where, folder = f"before operation {point}", _with_result(reference, processes)
        first = processes.run(forced, folder, kill_before=point)
        if not first.was_killed:
            tally.add(where, [f"did not happen: it ended with {first.code} ({first.last_words})"])
        elif not _has_a_result(reference, (folder / command.out).parent):
            tally.add(where, ["neither result is there any more"], lost=reference.units.total())
        else:
            reference.compare(tally, where, folder, processes.run(command.again, folder), 0)
    return tally


def _with_result(reference: Undisturbed, processes: Children) -> Path:
    folder, out = fresh(reference.command, processes), Path(reference.command.out)
    shutil.copytree(reference.folder / out.parent, folder / out.parent)
    return folder


def _has_a_result(reference: Undisturbed, folder: Path) -> bool:
    """Under any name."""
    for path in folder.iterdir():
        try:
            if path.is_dir() and reference.command.units(path) == reference.units:
                return True
        except (FathometerError, OSError, ValueError):
            continue
    return False


KILLED = Program(
    "killed",
    "Killed processes",
    "`measure`, `survey`, `leaky train` and `reproduce` are killed (`kill -9`) before every operation that "
    "changes the disk, `leaky sweep` before 60 of them, and all in the middle of writes; then the same "
    "command goes on. It is a failure if the result is not that of an undisturbed run bit for bit, if "
    "finished work is done again, or if files are left over.",
    _run,
)
