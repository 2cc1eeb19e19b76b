"""What a probe records beside its soundings: the time that measuring takes, and logged metrics."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.results.history import Cost

_RECENT = 3  # soundings; the next one is expected to cost as much as the most expensive of these
_STACK_SIZE = 1024  # numbers on a GPU that are stacked, so as not to hold a block of memory for each


class Budget:
    """Keeps the share of time spent on measuring below `max_share`, counting every step and all soundings.

    With s seconds spent so far, t seconds in total and c seconds for a sounding, another one is allowed if
    s + 2c ≤ max_share · (t + 2c): it and the one at the end still fit.
    """

    def __init__(self, max_share: float | None, clock: Callable[[], float] = time.perf_counter) -> None:
        self.max_share, self.now = max_share, clock
        self._seconds = self._before = self._last = 0.0
        self._since: float | None = None
        self._costs: deque[float] = deque(maxlen=_RECENT)

    @property
    def cost(self) -> Cost:
        """The cost up to the last step."""
        running = 0.0 if self._since is None else self._last - self._since
        return Cost(self._seconds, self._before + running, self.max_share)

    def start(self) -> float:
        """Start or continue the clock of the training; return the time."""
        self._last = now = self.now()
        if self._since is None:
            self._since = now
        return now

    def stop(self) -> None:
        """Stop the clock: what follows is no training time."""
        if self._since is not None:
            self._before += self.now() - self._since
            self._since = None

    def spent(self, began: float) -> None:
        """Count the time since `began` as spent on measuring; while the clock is stopped it is free."""
        if self._since is not None:
            self._last = now = self.now()
            self._seconds += now - began

    @contextmanager
    def counted(self, *, is_sounding: bool = False) -> Iterator[None]:
        """Count the time of the `with` block as spent on measuring, and maybe as the cost of a sounding."""
        began, before = self.now(), self._seconds
        try:
            yield
        finally:
            self.spent(began)
            if is_sounding:
                self._costs.append(self._seconds - before)

    def allows(self) -> bool:
        """Return whether another sounding fits."""
        if self.max_share is None:
            return True
        more = 2 * max(self._costs)
        total = self._before + (0.0 if self._since is None else self.now() - self._since)
        return self._seconds + more <= self.max_share * (total + more)

    def resume(self, cost: Cost, recent: Iterable[float]) -> None:
        """Continue from what an earlier process spent, whose soundings took `recent` seconds each."""
        self._seconds, self._before, self._since = cost.seconds, cost.total, None
        self._costs = deque(recent, maxlen=_RECENT)


class Metrics:
    """Numbers by name and step, the last one of each; those on a GPU are fetched later, many at once."""

    def __init__(self) -> None:
        self._columns: dict[str, dict[int, float | Tensor]] = {}
        self._on_gpu: list[tuple[str, int]] = []  # names and steps of numbers to fetch
        self._stacked = 0  # so many of these share memory

    def add(self, step: int, values: Mapping[str, Any]) -> None:
        """Keep numbers of a step; nothing waits for a GPU."""
        for name, value in values.items():
            number = _number(name, value)
            self._columns.setdefault(name, {})[step] = number
            if isinstance(number, Tensor):
                self._on_gpu.append((name, step))
        if len(self._on_gpu) - self._stacked >= _STACK_SIZE:
            for keys, numbers in self._stacks(self._on_gpu[self._stacked :]):
                self._put(keys, numbers.unbind())
            self._stacked = len(self._on_gpu)

    def restore(self, rows: Iterable[tuple[int, str, float]]) -> None:
        """Start with the numbers of an earlier process."""
        self._columns, self._on_gpu, self._stacked = {}, [], 0
        for step, name, value in rows:
            self._columns.setdefault(name, {})[step] = value

    def fetch(self) -> dict[str, dict[int, float]]:
        """Return all numbers, also those that are still on a GPU."""
        for keys, numbers in self._stacks(self._on_gpu):
            self._put(keys, map(float, numbers.tolist()))
        self._on_gpu, self._stacked = [], 0
        return self._columns  # type: ignore[return-value]

    def _stacks(self, keys: Sequence[tuple[str, int]]) -> list[tuple[list[tuple[str, int]], Tensor]]:
        """Stack the tensors with these keys, those of each device and dtype together."""
        alike: dict[tuple[torch.device, torch.dtype], dict[tuple[str, int], Tensor]] = {}
        for name, step in keys:
            number = self._columns[name][step]
            if isinstance(number, Tensor):  # it may have been replaced by a number
                alike.setdefault((number.device, number.dtype), {})[name, step] = number
        return [(list(found), torch.stack(list(found.values()))) for found in alike.values()]

    def _put(self, keys: Sequence[tuple[str, int]], numbers: Iterable[float | Tensor]) -> None:
        for (name, step), number in zip(keys, numbers, strict=True):
            self._columns[name][step] = number


def only_numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those entries that are one number each."""
    return {
        str(name): value
        for name, value in values.items()
        if (isinstance(value, int | float) and not isinstance(value, bool))
        or (hasattr(value, "numel") and value.numel() == 1)
    }


def _number(name: Any, value: Any) -> float | Tensor:
    if not isinstance(name, str):
        raise InputError(f"expected text as a name, got {name!r}", parameter="metrics")
    try:
        if isinstance(value, Tensor):
            if not value.is_cpu and value.numel() == 1:
                return value.detach().reshape(()).clone()  # to be fetched when it is needed
            return float(value.item())
        if isinstance(value, str):
            raise TypeError("text")
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{name}: expected a number or a tensor of one element, got {type(value).__name__}"
        ) from error
