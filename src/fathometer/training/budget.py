"""The time that measuring takes of a training, and whether another sounding fits under its bound."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from fathometer.results.history import Cost

_RECENT = 3  # soundings, the dearest of which is what the next one is expected to cost


class Budget:
    """Keeps the share of measuring below `bound`, counting every step and all soundings.

    With s seconds measured so far, t seconds in all and c seconds for a sounding, another one is allowed if
    s + 2c ≤ bound · (t + 2c): it and the one at the end still fit.
    """

    def __init__(self, bound: float | None, clock: Callable[[], float] = time.perf_counter) -> None:
        self.bound, self.now = bound, clock
        self._seconds = self._before = self._last = 0.0
        self._since: float | None = None
        self._costs: deque[float] = deque(maxlen=_RECENT)

    @property
    def cost(self) -> Cost:
        """What it has been up to the last step."""
        running = 0.0 if self._since is None else self._last - self._since
        return Cost(self._seconds, self._before + running, self.bound)

    def start(self) -> float:
        """Training goes on, and it is so late."""
        self._last = now = self.now()
        if self._since is None:
            self._since = now
        return now

    def stop(self) -> None:
        """Training pauses: what follows is not its time."""
        if self._since is not None:
            self._before += self.now() - self._since
            self._since = None

    def spent(self, began: float) -> None:
        """What was done since then would not be done without the probe. In a pause it costs nothing."""
        if self._since is not None:
            self._last = now = self.now()
            self._seconds += now - began

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """A sounding is taken in here."""
        before = self._seconds
        try:
            with self.counted():
                yield
        finally:
            self._costs.append(self._seconds - before)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """What is done in here is spent."""
        began = self.now()
        try:
            yield
        finally:
            self.spent(began)

    def allows(self) -> bool:
        """Whether another sounding fits."""
        if self.bound is None:
            return True
        more = 2 * max(self._costs)
        total = self._before + (0.0 if self._since is None else self.now() - self._since)
        return self._seconds + more <= self.bound * (total + more)

    def resume(self, cost: Cost, recent: Iterable[float]) -> None:
        """Go on from what an earlier process spent, whose soundings took `recent` seconds each."""
        self._seconds, self._before, self._since = cost.seconds, cost.total, None
        self._costs = deque(recent, maxlen=_RECENT)
