"""One network in each thread: many small products are faster so than with all threads on one of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

import torch

from fathometer.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    threads: int | None = None,
    on_failure: Callable[[], object] = lambda: None,
) -> list[Result]:
    """What `work` makes of each item, in order; `on_failure` tells those that run to come to an end.

    Example:
        >>> in_threads(abs, [-1, 2, -3], threads=2)
        [1, 2, 3]
    """
    if threads is not None and threads < 1:
        raise InputError(f"threads: expected a whole number from 1, got {threads}")
    with _one_torch_thread() as before, ThreadPoolExecutor(threads or before) as pool:
        waiting = [pool.submit(work, item) for item in items]
        try:
            done, _ = wait(waiting, return_when=FIRST_EXCEPTION)
            for one in done:
                one.result()  # what one has raised, before the others have ended
            return [one.result() for one in waiting]
        except BaseException:
            on_failure()
            for one in waiting:
                one.cancel()
            raise


@contextmanager
def _one_torch_thread() -> Iterator[int]:
    """Each thread computes alone; how many torch used before, at least as many as there are cores."""
    threads = torch.get_num_threads()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    torch.set_num_threads(1)
    try:
        yield max(threads, cores)
    finally:
        torch.set_num_threads(threads)
