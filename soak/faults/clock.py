"""A clock that is set back or forward while a command is at work, or between a kill and its continuation."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fathometer.results.files import STALE_AFTER
from soak.faults.children import Children, Ended, children
from soak.faults.commands import COMMANDS, SURVEY
from soak.faults.tally import Tally, Undisturbed, fresh, outcome, spread, undisturbed
from soak.program import Effort, Outcome, Program

_HOUR, _DAY = 3600.0, 86400.0
_BY_FSSPEC = ["survey", "plan.toml", "--out", "local://results"]


def _run(effort: Effort) -> Outcome:
    shifts = {"an hour back": -_HOUR, "a day back": -_DAY, "a day forward": _DAY, "to 1980": -1.45e9}
    if effort == "smoke":
        shifts = {"a day forward": _DAY}
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
            if command is SURVEY:
                tallies += _ages(reference, processes, shifts)
    notes = [
        "The clock is that of the process (`time.time`, `datetime.now`); times of files stay those of the "
        "system, so that they lie in the future of a clock that was set back. A wait of more than a minute "
        "is a failure, and so is a clock that was not set.",
        "Where a file system has no locks, and by way of fsspec, a file that is half written is known by its "
        "age. Beside the survey lie one that has just been written, which must stay, and one of two hours "
        "ago, which must go.",
    ]
    return outcome(tallies, notes)


def _under_way(
    reference: Undisturbed, processes: Children, tally: Tally, where: str, shift: float, point: int
) -> None:
    folder = fresh(reference.command, processes)
    ended = processes.run(reference.command.first, folder, clock=shift, clock_from=point)
    if _has_happened(tally, where, ended):
        reference.compare(tally, where, folder, ended, ended.work)


def _between(
    reference: Undisturbed, processes: Children, tally: Tally, where: str, shift: float, point: int
) -> None:
    command = reference.command
    folder = fresh(command, processes)
    first = processes.run(command.first, folder, kill_before=point)
    ended = processes.run(command.again, folder, clock=shift)
    if not first.was_killed:
        tally.add(where, ["did not happen: it was not killed"])
    elif _has_happened(tally, where, ended):
        work = first.work + ended.work
        reference.compare(tally, where, folder, ended, work, may_repeat=command.may_repeat)


def _together(reference: Undisturbed, processes: Children, tally: Tally, where: str, shift: float) -> None:
    command = reference.command
    folder = fresh(command, processes)
    ended = processes.run_together([(command.first, {}), (command.first, {"clock": shift})], folder)
    finished = [process for process in ended if process.code == 0]
    wrong = [process.last_words for process in ended if process.code != 0 and not process.is_plain_error]
    if wrong or not finished:
        tally.add(where, [f"ended without a plain error ({'; '.join(wrong)})"])
    elif _has_happened(tally, where, ended[1]):
        reference.compare(tally, where, folder, finished[0], sum(process.work for process in ended))


def _has_happened(tally: Tally, where: str, ended: Ended) -> bool:
    if ended.clocks != 1:
        tally.add(where, [f"did not happen: the clock was set {ended.clocks} times"])
    return ended.clocks == 1


def _ages(reference: Undisturbed, processes: Children, shifts: Mapping[str, float]) -> Iterator[Tally]:
    """What decides by the age of a file."""
    ways: dict[str, tuple[list[str], str, dict[str, Any]]] = {
        "without locks": (SURVEY.first, ".{}.0123456789ab.part.json", {"has_locks": False}),
        "by way of fsspec": (_BY_FSSPEC, "{}.part", {}),
    }
    for way, (arguments, name, affliction) in ways.items():
        tally = Tally(f"`survey` {way}, beside files half written", ", ".join(shifts))
        for words, shift in shifts.items():
            folder = fresh(SURVEY, processes)
            new, old = (_half_written(folder, name.format(age), age) for age in ("new", "old"))
            ended = processes.run(arguments, folder, clock=shift, **affliction)
            if not _has_happened(tally, words, ended):
                continue
            wrong = [] if ended.code == 0 else [f"exit code {ended.code} ({ended.last_words})"]
            wrong += [] if new.exists() else ["what another process is writing was removed"]
            wrong += ["what was left long ago stays"] if old.exists() else []
            wrong += [] if reference.is_there(folder) else ["another result"]
            tally.add(words, wrong)
        yield tally


def _half_written(folder: Path, name: str, age: str) -> Path:
    path = folder / SURVEY.out / "pending" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("half", "utf-8")
    if age == "old":
        written = path.stat().st_mtime - 2 * STALE_AFTER
        os.utime(path, (written, written))
    return path


CLOCK = Program(
    "clock",
    "A clock set back",
    "The clock jumps while a command is at work, between a kill and its continuation, and two processes in "
    "one folder have two clocks. It is a failure if the result is not that of an undisturbed run, if a file "
    "that another process is writing is taken for an old one, or if one waits.",
    _run,
)
