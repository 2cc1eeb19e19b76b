"""Killed processes.

Each command is killed (`kill -9`) before every operation that changes the disk: opening a file to write,
renaming, removing, making a folder (of `leaky sweep`, before 60 of them). It is also killed in the middle
of writes of growing size. Then the same command is run again, or with `--resume`. It is a failure if the
result is not that of an undisturbed run bit for bit, if more work is repeated than the batch or the
training segments in progress, or if files are left over. Training writes a checkpoint after every segment
here; normally there is one every ten seconds.
"""

from __future__ import annotations

from benchmarks.records import Row
from tests.robustness.commands import (
    MEASURE,
    SURVEY,
    SWEEP,
    TRAIN,
    Command,
    Undisturbed,
    make_old,
    sizes,
    spread,
)
from tests.robustness.processes import Processes

_SWEEP_POINTS = 60  # it has about 240 operations, each of which takes long
COMMANDS = (MEASURE, SURVEY, SWEEP, TRAIN)


@sizes(COMMANDS, small=[MEASURE, SURVEY, TRAIN])
def test_killed_before_an_operation_on_a_file(
    command: Command, full: bool, row: Row, processes: Processes
) -> None:
    reference = Undisturbed.run(command, processes)
    last = reference.ended.files
    points = spread(last, (_SWEEP_POINTS if command is SWEEP else last) if full else 2)
    row |= {"command": command.name, "killed": "before an operation", "places": f"{len(points)} of {last}"}
    faults = [
        f"before operation {p}: {fault}"
        for p in points
        for fault in _trial(reference, processes, kill_before=p)
    ]
    row |= {"tried": len(points), "failed": len(faults)}
    assert faults == []


@sizes(COMMANDS, small=[SURVEY])
def test_killed_in_the_middle_of_a_write(
    command: Command, full: bool, row: Row, processes: Processes
) -> None:
    reference = Undisturbed.run(command, processes)
    ends = spread(reference.largest - 1, 20 if full else 1)
    row |= {"command": command.name, "killed": "in a write", "places": f"past byte {ends[0]} to {ends[-1]}"}
    faults = [f"past byte {s}: {fault}" for s in ends for fault in _trial(reference, processes, kill_past=s)]
    row |= {"tried": len(ends), "failed": len(faults)}
    assert faults == []


def _trial(reference: Undisturbed, processes: Processes, **fault: int) -> list[str]:
    command = reference.command
    folder = command.new_folder(processes)
    first = processes.run(command.first, folder, **fault)
    if not first.was_killed:
        return [f"was not killed: it ended with {first.code} ({first.last_line})"]
    make_old(folder)
    again = processes.run(command.again, folder)
    found = reference.faults(folder, again, first.work + again.work, may_repeat=command.may_repeat)
    return found if command.is_intact(folder) else [*found, "an earlier result was changed"]
