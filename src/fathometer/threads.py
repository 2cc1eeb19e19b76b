"""Threads that an interrupt does not wait for, and how many threads torch uses during a block of code."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import torch

_P = ParamSpec("_P")
_T = TypeVar("_T")

_SECONDS_AT_EXIT = 1.0  # for threads that were left alone
_ABANDONED: list[threading.Thread] = []


class Pool(Executor):
    """A pool of threads that an interrupt does not wait for.

    A call of LAPACK or a gauge of a user can take long, and nothing can stop a thread inside of it. After
    Ctrl-C, a `ThreadPoolExecutor` waits until all its threads have finished, and so does Python before it
    ends. These threads are daemons: they are left alone, and end with their job or with Python. After any
    other error, jobs under way are waited for.

    Attributes:
        is_abandoned: whether nobody waits for results any more.
    """

    def __init__(self, workers: int, initializer: Callable[[], object] = lambda: None) -> None:
        self._workers, self._initializer = workers, initializer
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self.is_abandoned = False

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Run a function in one of the threads."""
        future: Future[_T] = Future()
        self._jobs.put((future, partial(fn, *args, **kwargs)))
        if len(self._threads) < self._workers:
            thread = threading.Thread(target=self._work, daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def _work(self) -> None:
        self._initializer()
        _THIS_THREAD.pool = self
        while (job := self._jobs.get()) is not None:
            future, call = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)
            del job, future, call  # and what they hold, while this thread waits

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end once all jobs are done, or only those under way; wait for that if asked to."""
        while cancel_futures:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                break
            if job is not None:
                job[0].cancel()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads if wait else ():
            thread.join()

    def abandon(self) -> None:
        """Leave the threads alone: what waits is cancelled, what runs is not waited for."""
        self.is_abandoned = True
        self.shutdown(wait=False, cancel_futures=True)
        _ABANDONED.extend(self._threads)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the threads, unless this is an interrupt."""
        if kind is None or issubclass(kind, Exception):
            self.shutdown(cancel_futures=kind is not None)
        else:
            self.abandon()


def check_abandoned() -> None:
    """Raise `CancelledError` in a thread of a pool that was left alone: nobody waits for its result."""
    pool: Pool | None = getattr(_THIS_THREAD, "pool", None)
    if pool is not None and pool.is_abandoned:
        raise CancelledError


def are_abandoned() -> bool:
    """Return whether threads are running that were left alone."""
    return any(thread.is_alive() for thread in _ABANDONED)


@atexit.register
def _wait_at_exit() -> None:
    """Let a computation of torch end: Python would crash if it came back too late."""
    until = time.monotonic() + _SECONDS_AT_EXIT
    for thread in _ABANDONED:
        thread.join(max(until - time.monotonic(), 0))


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
def pool_of_single_threads(workers: int | None = None) -> Iterator[Pool]:
    """Yield a pool whose threads each use one torch thread: faster for many small tasks.

    The pool has as many threads as torch used before, unless `workers` says how many.
    """
    with torch_threads(1) as before, Pool(workers or before, _use_one_thread) as pool:
        yield pool


def _use_one_thread() -> None:
    """Keep blocks within a thread of a pool from restoring more than one thread."""
    torch.set_num_threads(1)
    _THIS_THREAD.count = 1
