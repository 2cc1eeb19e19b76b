"""Several processes in one folder.

Two and four processes run the same command in the same folder, at once or some tenths of a second apart.
Those of a survey share the work; of the other commands one works, and the others end with one error message
and do no work. It is a failure if the result is not that of one process bit for bit, if work is done twice,
or if a process ends with a traceback.
"""

from __future__ import annotations

import pytest

from benchmarks.records import Row
from tests.robustness.commands import MEASURE, SURVEY, SWEEP, Command, Undisturbed, sizes
from tests.robustness.processes import Ended, Processes

_APART = (0.0, 0.0, 0.05, 0.15, 0.3)  # seconds between two starts


@pytest.mark.parametrize("count", [2, 4])
@sizes([MEASURE, SURVEY, SWEEP], small=[MEASURE, SURVEY])
def test_processes_at_once(command: Command, count: int, full: bool, row: Row, processes: Processes) -> None:
    reference = Undisturbed.run(command, processes)
    faults = []
    rounds = range(10 if full else 1)
    for number in rounds:
        apart = _APART[number % len(_APART)]
        folder = command.new_folder(processes)
        ended = processes.run_together([(command.first, {"delay": apart * i}) for i in range(count)], folder)
        found = _faults(command, ended)
        if not found:
            finished = next(process for process in ended if process.code == 0)
            found = reference.faults(folder, finished, sum(process.work for process in ended))
        faults += [f"{apart:g} s apart: {fault}" for fault in found]
    row |= {"command": command.name, "processes": count, "tried": len(rounds), "failed": len(faults)}
    assert faults == []


def _faults(command: Command, ended: list[Ended]) -> list[str]:
    finished = sum(process.code == 0 for process in ended)
    found = [
        f"ended with {process.code} ({process.last_line})"
        for process in ended
        if process.code != 0 and (command is SURVEY or not process.is_plain_error)
    ]
    if not finished or (command is not SURVEY and finished > 1):
        found.append(f"expected one process to finish, got {finished}")
    return found
