"""Set how many threads torch uses during a block of code, also where such blocks overlap in time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import torch


@dataclass
class _Blocks:
    """The blocks of all threads that have begun and not ended, and torch's threads before the first."""

    lock: threading.Lock
    count: int = 0
    before: int = 1


_BLOCKS = _Blocks(threading.Lock())
_THIS_THREAD = threading.local()  # .count: the number that the innermost block of this thread has set


@contextmanager
def torch_threads(count: int) -> Iterator[int]:
    """Let torch use `count` threads during the block; yield how many it used before.

    torch keeps one number for each thread, and one that new threads start with. A thread that starts during
    a block of another thread sees that block's number; restoring it would leave torch there for ever.
    Therefore the number from before the first of the overlapping blocks is restored.
    """
    enclosing = getattr(_THIS_THREAD, "count", None)
    with _BLOCKS.lock:
        now = torch.get_num_threads()
        unchanged = now == count and (enclosing is not None or not _BLOCKS.count)
        if not unchanged:
            if not _BLOCKS.count:
                _BLOCKS.before = now
            _BLOCKS.count += 1
            torch.set_num_threads(count)
    if unchanged:
        yield now
        return
    before = enclosing or _BLOCKS.before
    _THIS_THREAD.count = count
    try:
        yield before
    finally:
        _THIS_THREAD.count = enclosing
        with _BLOCKS.lock:
            _BLOCKS.count -= 1
            torch.set_num_threads(before)


@contextmanager
def pool_of_single_threads(workers: int | None = None) -> Iterator[ThreadPoolExecutor]:
    """Yield a pool whose threads each use one torch thread: faster for many small tasks.

    The pool has as many threads as torch used before, unless `workers` says how many.
    """
    with (
        torch_threads(1) as before,
        ThreadPoolExecutor(workers or before, initializer=_use_one_thread) as pool,
    ):
        yield pool


def _use_one_thread() -> None:
    """Keep blocks within a thread of a pool from restoring more than one thread."""
    torch.set_num_threads(1)
    _THIS_THREAD.count = 1
