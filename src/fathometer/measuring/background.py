"""Compute in the background of forward passes on a GPU: in one thread, on a stream of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from typing import TypeVar

import torch

from fathometer.threads import Pool

T = TypeVar("T")


class Background:
    """Runs one job after the other while the caller continues."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool = Pool(1)

    def start(self, job: Callable[[], T]) -> Future[T]:
        """Start a job, which sees all that was computed on the caller's stream so far."""
        if self._device.type != "cuda":
            return self._pool.submit(torch.no_grad()(job))
        current = torch.cuda.current_stream(self._device)
        return self._pool.submit(_on_own_stream, _stream(current.device), current.record_event(), job)

    def close(self, *, wait: bool) -> None:
        """Wait for the job under way and end the thread, or leave it alone."""
        if wait:
            self._pool.shutdown()
        else:
            self._pool.abandon()


def _on_own_stream(stream: torch.cuda.Stream, written: torch.cuda.Event, job: Callable[[], T]) -> T:
    with torch.no_grad(), torch.cuda.stream(stream):
        stream.wait_event(written)
        try:
            return job()
        finally:
            stream.synchronize()  # then what it has read can be written again


@cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    """Return the same stream every time: memory belongs to a stream, and would be allocated for each.

    Its kernels are small and many, so that they go before those of the network.
    """
    return torch.cuda.Stream(device, priority=-1)
