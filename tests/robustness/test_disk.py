"""A full disk, a read-only folder.

Each command that writes is given a disk with too little space, and one that cannot be written: a `tmpfs` of
8 MB if one can be mounted, otherwise limits on the size of files and folders without permission. The
command must end with one error message, earlier results must stay as they were, and once there is space the
command must resume to the result of an undisturbed run. Where nothing can be written, no work may be done
before this is noticed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.robustness.commands import (
    MEASURE,
    PAPERS,
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
from tests.robustness.recording import Row

_PAGE = 4096
_SIZE = 8 * 2**20  # bytes
_NOBODY = 65534
COMMANDS = (MEASURE, SURVEY, SWEEP, TRAIN, REPORT, PAPERS)


class Disk:
    """A `tmpfs`, if one can be mounted; otherwise a folder whose processes are limited instead."""

    def __init__(self, path: Path, is_mounted: bool) -> None:
        self.path, self.is_mounted = path, is_mounted
        self._filler = path / ".filler"

    @contextmanager
    def nearly_full(self, free: int) -> Iterator[dict[str, Any]]:
        """Leave so many bytes free, rounded to pages; yields the fault for the process."""
        if not self.is_mounted:
            yield {"full_past": max(free, _PAGE)}
            return
        with self._filler.open("wb", buffering=0) as file:
            with suppress(OSError):
                while file.write(bytes(_PAGE)):
                    pass
            file.truncate(max(0, file.tell() // _PAGE * _PAGE - free // _PAGE * _PAGE))
        try:
            yield {}
        finally:
            self._filler.unlink()

    @contextmanager
    def read_only(self) -> Iterator[dict[str, Any]]:
        """Make it read-only; yields the fault for the process."""
        if self.is_mounted:
            _mount("-o", "remount,ro", str(self.path))
            try:
                yield {}
            finally:
                _mount("-o", "remount,rw", str(self.path))
            return
        folders = [self.path, *(path for path in self.path.rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        try:
            yield {"user": _NOBODY} if os.getuid() == 0 else {}
        finally:
            for folder in folders:
                folder.chmod(0o755)


@contextmanager
def small_disk(command: Command, processes: Processes) -> Iterator[Disk]:
    """Mount a disk with what a command needs."""
    path = processes.new_folder()
    is_mounted = _mount("-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(path))
    try:
        command.prepare(path)
        yield Disk(path, is_mounted)
    finally:
        if is_mounted:
            subprocess.run(["umount", str(path)], check=True)


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
    faults, was_full, mounted = [], 0, False
    places = [(pages - 1) * _PAGE for pages in (*spread(pages, 10 if full else 2), 2 * pages)]
    for free in places:
        with small_disk(command, processes) as disk:
            mounted = disk.is_mounted
            with disk.nearly_full(free) as fault:
                ended = processes.run(command.first, disk.path, **fault)
            was_full += ended.code != 0
            found = _faults(command, disk, ended)
            if ended.code != 0 and free == 0 and disk.is_mounted and ended.work:
                found.append(f"{ended.work} units of work before it was noticed")
            if ended.code == 0:
                found += reference.faults(disk.path, ended, ended.work)
            elif not found:
                again = processes.run(command.again, disk.path)
                work = ended.work + again.work
                found = reference.faults(disk.path, again, work, may_repeat=command.unwritten)
            faults += [f"{free} bytes free: {fault}" for fault in found]
    how = f"full {was_full} times, {'tmpfs' if mounted else 'limits'}"
    row |= {
        "command": command.name,
        "fault": "full disk",
        "how": how,
        "tried": len(places),
        "failed": len(faults),
    }
    assert faults == []


@sizes(COMMANDS, small=[MEASURE])
def test_a_read_only_folder(command: Command, full: bool, row: Row, processes: Processes) -> None:
    """At first, and with what a killed process left."""
    reference = Undisturbed.run(command, processes)
    faults, mounted = [], False
    points = spread(reference.ended.files, 4 if full else 1)
    for point in points:
        with small_disk(command, processes) as disk:
            mounted = disk.is_mounted
            faults += [f"at {point}: {fault}" for fault in _read_only(reference, processes, disk, point)]
    how = "tmpfs" if mounted else "no permission"
    row |= {
        "command": command.name,
        "fault": "read-only",
        "how": how,
        "tried": len(points),
        "failed": len(faults),
    }
    assert faults == []


def _read_only(reference: Undisturbed, processes: Processes, disk: Disk, point: int) -> list[str]:
    command = reference.command
    killed = None if point == 1 else processes.run(command.first, disk.path, kill_before=point)
    if killed is not None and not killed.was_killed:
        return ["was not killed"]
    make_old(disk.path)
    arguments = command.first if killed is None else command.again
    is_done = killed is not None and reference.is_complete(disk.path)
    with disk.read_only() as fault:
        ended = processes.run(arguments, disk.path, **fault)
    found = _faults(command, disk, ended)
    if ended.work:
        found.append(f"{ended.work} units of work before it was noticed")
    if ended.code == 0 and not is_done:  # where nothing has to be written there is nothing to notice
        found.append("it was not noticed")
    if found:
        return found
    again = processes.run(arguments, disk.path)
    work, repeated = (0, 0) if killed is None else (killed.work, command.may_repeat)
    return reference.faults(disk.path, again, work + again.work, may_repeat=repeated)


def _faults(command: Command, disk: Disk, ended: Ended) -> list[str]:
    found = []
    if ended.code != 0 and not ended.is_plain_error:
        found.append(f"ended with {ended.code} ({ended.last_line})")
    if not command.is_intact(disk.path):
        found.append("an earlier result was changed")
    return found
