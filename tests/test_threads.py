"""Blocks that set the number of torch's threads may overlap in time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import torch
from torch import Tensor

from fathometer.gauges import choose_gauges, read_gauges
from fathometer.gauges.spectrum import eigenvalues
from fathometer.threads import pool_of_single_threads, torch_threads


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def in_new_thread() -> int:
    """Return the number of torch's threads that a new thread starts with."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(torch.get_num_threads).result()


def test_measurements_that_overlap_in_two_threads_restore_the_number() -> None:
    first_began, second_began, first_ended = Event(), Event(), Event()

    def measure(began: Event, wait_for: Event, ended: Event) -> int:
        def waits(x: Tensor, y: Tensor) -> float:
            began.set()
            wait_for.wait(10)
            return float((x - y).sum())

        x = torch.randn(8, 2)
        read_gauges(choose_gauges(waits), {"a": (x, x), "b": (x, x)})
        ended.set()
        return torch.get_num_threads()

    with ThreadPoolExecutor(2) as pool:
        ends_first = pool.submit(measure, first_began, second_began, first_ended)
        first_began.wait(10)
        ends_last = pool.submit(measure, second_began, first_ended, Event())
        assert (ends_first.result(), ends_last.result()) == (3, 3)
    assert in_new_thread() == torch.get_num_threads() == 3


def test_nested_blocks_restore_what_encloses_them() -> None:
    with torch_threads(2) as before:
        assert (before, torch.get_num_threads(), in_new_thread()) == (3, 2, 2)
        with torch_threads(1) as before:
            assert (before, torch.get_num_threads()) == (2, 1)
        assert torch.get_num_threads() == 2
    assert in_new_thread() == torch.get_num_threads() == 3


def test_threads_of_a_pool_stay_alone() -> None:
    def work(size: int) -> int:
        eigenvalues(torch.eye(size, dtype=torch.float64))
        return torch.get_num_threads()

    with pool_of_single_threads(2) as pool:
        assert list(pool.map(work, range(2, 8))) == [1] * 6
    with pytest.raises(ZeroDivisionError), pool_of_single_threads() as pool:
        pool.submit(lambda: 1 / 0).result()
    assert in_new_thread() == torch.get_num_threads() == 3
