"""What befalls a process: killed before an operation on a file or in a write, no space, no locks, a clock.

All of it is done from inside the process, without a change to the package: an audit hook sees the operations
on files, a limit of the system cuts a write.
"""

from __future__ import annotations

import datetime
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fathometer.results.locks
import fathometer.results.provenance
from fathometer.leaky import sweeping, training
from soak.faults import marks
from soak.faults.marks import Counter

_CHANGES = {"os.rename": 2, "os.remove": 1, "os.mkdir": 1, "os.rmdir": 1}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Order:
    """A command of fathometer in a process of its own, and what befalls it.

    Attributes:
        arguments: of the command.
        folder: where it is given; operations on files below are counted.
        kill_before: the number of the operation before which it is killed, as `kill -9` does.
        kill_past: the byte past which a write to any file kills it.
        full_past: the byte past which no file can grow.
        clock: seconds by which its clock is off.
        clock_from: the number of the operation from which on; 0 from the beginning.
        has_locks: whether its file system has any.
        user: whose permissions it has.
        delay: seconds before it begins.
        limit: seconds after which it is taken to hang.
    """

    arguments: list[str]
    folder: str
    kill_before: int | None = None
    kill_past: int | None = None
    full_past: int | None = None
    clock: float = 0.0
    clock_from: int = 0
    has_locks: bool = True
    user: int | None = None
    delay: float = 0.0
    limit: int = 60


class Counters:
    """What a process did, and how often its clock was set."""

    def __init__(self) -> None:
        self.work, self.files, self.clocks = Counter(), Counter(), Counter()


def afflict(order: Order, counters: Counters) -> None:
    """Prepare this process for what is to befall it."""
    marks.work = counters.work
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(order.limit)
    time.sleep(order.delay)
    _note_segments()
    _watch_files(order, counters)
    if not order.has_locks:
        fathometer.results.locks.fcntl = None
    if order.kill_past is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python has it ignored
    size = order.kill_past if order.kill_past is not None else order.full_past
    if size is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    if order.user is not None:
        os.setgroups([])
        os.setgid(order.user)
        os.setuid(order.user)


def _note_segments() -> None:
    """A segment of training is work, too; and after each there is a checkpoint."""
    advance = training.Training.advance

    def noted(self: training.Training) -> None:
        with marks.working():
            advance(self)

    training.Training.advance = noted  # type: ignore[method-assign]
    sweeping.CHECKPOINT_EVERY, sweeping.RARELY = 0.0, 0


def _watch_files(order: Order, counters: Counters) -> None:
    area = Path(order.folder).resolve()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        paths: tuple[Any, ...] = ()
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
            paths = arguments[:1]
        elif event in _CHANGES:
            paths = arguments[: _CHANGES[event]]
        if not any(_is_below(path, area) for path in paths):
            return
        count = counters.files.add()
        if count == order.kill_before:
            os.kill(os.getpid(), signal.SIGKILL)
        if count == order.clock_from and order.clock:
            _set_clock(order.clock, counters)

    sys.addaudithook(hook)
    if order.clock and not order.clock_from:
        _set_clock(order.clock, counters)


def _is_below(path: Any, area: Path) -> bool:
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    return str(area) == os.path.commonpath((area, os.path.abspath(os.fsdecode(path))))


def _set_clock(shift: float, counters: Counters) -> None:
    """The clock of this process, as Python and fathometer read it; the file system keeps its own."""
    counters.clocks.add()
    seconds, nanoseconds = time.time, time.time_ns
    time.time = lambda: seconds() + shift
    time.time_ns = lambda: nanoseconds() + int(shift * 1e9)

    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return datetime.datetime.fromtimestamp(time.time(), tz)

    fathometer.results.provenance.datetime = Shifted  # type: ignore[attr-defined]
