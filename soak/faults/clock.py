"""A clock that is set back or forward while a command is at work, or between a kill and its continuation."""

from __future__ import annotations

from soak.faults.children import Children, children
from soak.faults.commands import COMMANDS, SURVEY
from soak.faults.tally import Tally, Undisturbed, fresh, outcome, spread, undisturbed
from soak.program import Effort, Outcome, Program

_HOUR, _DAY = 3600.0, 86400.0


def _run(effort: Effort) -> Outcome:
    shifts = {"an hour back": -_HOUR, "a day back": -_DAY, "a day forward": _DAY, "to 1980": -1.45e9}
    if effort == "smoke":
        shifts = {"a day back": -_DAY}
    tallies = []
    with children() as processes:
        for command in COMMANDS if effort == "full" else (SURVEY,):
            reference = undisturbed(command, processes)
            points = spread(reference.ended.files, 10 if effort == "full" else 2)
            under_way = Tally(f"`{command.name}`, while it is at work", ", ".join(shifts))
            between = Tally(f"`{command.name}`, between kill and continuation", ", ".join(shifts))
            together = Tally(f"`{command.name}`, two processes with two clocks", ", ".join(shifts))
            for words, shift in shifts.items():
                for point in points:
                    _under_way(reference, processes, under_way, f"{words} at {point}", shift, point)
                    _between(reference, processes, between, f"{words} at {point}", shift, point)
                _together(reference, processes, together, words, shift)
            tallies += [under_way, between, together]
    notes = [
        "The clock is that of the process (`time.time`, `datetime.now`); times of files stay those of the "
        "system, so that they lie in the future of a clock that was set back. A wait of more than a minute "
        "is a failure."
    ]
    return outcome(tallies, notes)


def _under_way(
    reference: Undisturbed, processes: Children, tally: Tally, where: str, shift: float, point: int
) -> None:
    folder = fresh(reference.command, processes)
    ended = processes.run(reference.command.first, folder, clock=shift, clock_from=point)
    reference.compare(tally, where, folder, ended, ended.work)


def _between(
    reference: Undisturbed, processes: Children, tally: Tally, where: str, shift: float, point: int
) -> None:
    folder = fresh(reference.command, processes)
    first = processes.run(reference.command.first, folder, kill_before=point)
    ended = processes.run(reference.command.again, folder, clock=shift)
    reference.compare(tally, where, folder, ended, first.work + ended.work)


def _together(reference: Undisturbed, processes: Children, tally: Tally, where: str, shift: float) -> None:
    command = reference.command
    folder = fresh(command, processes)
    ended = processes.run_together([(command.first, {}), (command.first, {"clock": shift})], folder)
    finished = [process for process in ended if process.code == 0]
    wrong = [process.last_words for process in ended if process.code != 0 and not process.is_plain_error]
    if wrong or not finished:
        tally.add(where, [f"ended without a plain error ({'; '.join(wrong)})"])
    else:
        reference.compare(tally, where, folder, finished[0], sum(process.work for process in ended))


CLOCK = Program(
    "clock",
    "A clock set back",
    "The clock jumps while a command is at work, between a kill and its continuation, and two processes in "
    "one folder have two clocks. It is a failure if the result is not that of an undisturbed run, or if "
    "one waits.",
    _run,
)
