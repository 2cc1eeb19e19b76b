"""Work is noted: a number in shared memory, or, in a worker of Ray, a file by which it can be found."""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MARKS, NODE = "SOAK_MARKS", "SOAK_NODE"


class Counter:
    """A number in memory that is shared with the process that forked this one, and so outlives a kill."""

    def __init__(self) -> None:
        self._memory, self._lock = mmap.mmap(-1, 8), threading.Lock()

    def add(self) -> int:
        """One more; how many there are then."""
        with self._lock:
            self._memory[:] = (self.value + 1).to_bytes(8, "little")
            return self.value

    @property
    def value(self) -> int:
        """How many there are."""
        return int.from_bytes(self._memory[:], "little")


work: Counter | None = None
"""That of this process, if its work is to be counted."""


@contextmanager
def working() -> Iterator[None]:
    """For as long as a forward pass, or a segment of training, lasts.

    In a worker of Ray its mark is there meanwhile, and it takes its time, so that it can be killed.
    """
    if work is not None:
        work.add()
    folder = os.environ.get(MARKS)
    if work is not None or not folder:
        yield
        return
    mark = Path(folder, str(os.getpid()))
    mark.write_text(os.environ.get(NODE, ""))
    try:
        time.sleep(0.1)
        yield
    finally:
        mark.unlink()
