"""A full disk, a read-only folder.

Each command that writes is given a disk with too little space, and one that cannot be written: a `tmpfs` of
8 MB. The command must end with one error message, earlier results must stay as they were, and once there is
space the command must resume to the result of an undisturbed run. Where nothing can be written, no work may
be done before this is noticed.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from benchmarks.records import Row
from tests.robustness.commands import (
    MEASURE,
    REPORT,
    SURVEY,
    SWEEP,
    TRAIN,
    Command,
    Undisturbed,
    make_old,
    sizes,
    spread,
)
from tests.robustness.processes import Ended, Processes

_PAGE = 4096
_SIZE = 8 * 2**20  # bytes
COMMANDS = (MEASURE, SURVEY, SWEEP, TRAIN, REPORT)


@contextmanager
def small_disk(command: Command, processes: Processes) -> Iterator[Path]:
    """Mount a disk with what a command needs."""
    path = processes.new_folder()
    if not _mount("-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(path)):
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        command.prepare(path)
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


@contextmanager
def nearly_full(disk: Path, free: int) -> Iterator[None]:
    """Leave so many bytes free, rounded to pages."""
    filler = disk / ".filler"
    with filler.open("wb", buffering=0) as file:
        with suppress(OSError):
            while file.write(bytes(_PAGE)):
                pass
        file.truncate(max(0, file.tell() // _PAGE * _PAGE - free // _PAGE * _PAGE))
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    """Make it read-only."""
    _mount("-o", "remount,ro", str(disk))
    try:
        yield
    finally:
        _mount("-o", "remount,rw", str(disk))


def _mount(*arguments: str) -> bool:
    try:
        return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@sizes(COMMANDS, small=[MEASURE, SURVEY])
def test_a_full_disk(command: Command, full: bool, row: Row, processes: Processes) -> None:
    reference = Undisturbed.run(command, processes)
    out = reference.folder / command.out
    lengths = [path.stat().st_size for path in (out, *out.rglob("*")) if path.is_file()]
    pages = sum(-(-size // _PAGE) for size in lengths) + 6
    faults, was_full = [], 0
    places = [(pages - 1) * _PAGE for pages in (*spread(pages, 10 if full else 2), 2 * pages)]
    for free in places:
        with small_disk(command, processes) as disk:
            with nearly_full(disk, free):
                ended = processes.run(command.first, disk)
            was_full += ended.code != 0
            found = _faults(command, disk, ended)
            if ended.code != 0 and free == 0 and ended.work:
                found.append(f"{ended.work} units of work before it was noticed")
            if ended.code == 0:
                found += reference.faults(disk, ended, ended.work)
            elif not found:
                again = processes.run(command.again, disk)
                work = ended.work + again.work
                found = reference.faults(disk, again, work, may_repeat=command.unwritten)
            faults += [f"{free} bytes free: {fault}" for fault in found]
    _record(row, command, "full disk", f"full {was_full} times, tmpfs", len(places), faults)


@sizes(COMMANDS, small=[MEASURE])
def test_a_read_only_folder(command: Command, full: bool, row: Row, processes: Processes) -> None:
    """At first, and with what a killed process left."""
    reference = Undisturbed.run(command, processes)
    faults = []
    points = spread(reference.ended.files, 4 if full else 1)
    for point in points:
        with small_disk(command, processes) as disk:
            faults += [f"at {point}: {fault}" for fault in _read_only(reference, processes, disk, point)]
    _record(row, command, "read-only", "tmpfs", len(points), faults)


def _read_only(reference: Undisturbed, processes: Processes, disk: Path, point: int) -> list[str]:
    command = reference.command
    killed = None if point == 1 else processes.run(command.first, disk, kill_before=point)
    if killed is not None and not killed.was_killed:
        return ["was not killed"]
    make_old(disk)
    arguments = command.first if killed is None else command.again
    is_done = killed is not None and reference.is_complete(disk)
    with read_only(disk):
        ended = processes.run(arguments, disk)
    found = _faults(command, disk, ended)
    if ended.work:
        found.append(f"{ended.work} units of work before it was noticed")
    if ended.code == 0 and not is_done:  # where nothing has to be written there is nothing to notice
        found.append("it was not noticed")
    if found:
        return found
    again = processes.run(arguments, disk)
    work, repeated = (0, 0) if killed is None else (killed.work, command.may_repeat)
    return reference.faults(disk, again, work + again.work, may_repeat=repeated)


def _record(row: Row, command: Command, fault: str, how: str, tried: int, faults: list[str]) -> None:
    row |= {"command": command.name, "fault": fault, "how": how, "tried": tried, "failed": len(faults)}
    assert faults == []


def _faults(command: Command, disk: Path, ended: Ended) -> list[str]:
    found = []
    if ended.code != 0 and not ended.is_plain_error:
        found.append(f"ended with {ended.code} ({ended.last_line})")
    if not command.is_intact(disk):
        found.append("an earlier result was changed")
    return found
