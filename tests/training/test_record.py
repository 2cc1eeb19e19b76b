from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fathometer.results.history import Cost
from fathometer.training import record
from fathometer.training.record import Budget


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def training(bound: float, steps: int, a_step: float, a_sounding: float) -> tuple[Cost, list[int]]:
    """The first and the last step are measured in any case."""
    clock = Clock()
    budget = Budget(bound, clock)
    budget.start()
    measured = []
    for step in range(steps + 1):
        clock.now += a_step if step else 0.0
        if step in (0, steps) or budget.allows():
            with budget.counted(is_sounding=True):
                clock.now += a_sounding
            measured.append(step)
    return budget.cost, measured


@given(
    bound=st.floats(0.005, 0.5),
    a_step=st.floats(1e-4, 1.0),
    ratio=st.floats(0.01, 30.0),
    steps=st.integers(1, 3000),
)
def test_the_share_stays_below_the_bound_once_there_is_time_for_two(
    bound: float, a_step: float, ratio: float, steps: int
) -> None:
    cost, measured = training(bound, steps, a_step, ratio * a_step)
    least = 2 * ratio * a_step  # for the first and the last
    assert cost.total == pytest.approx(steps * a_step + cost.seconds)
    if least <= bound * (steps * a_step + least):
        assert cost.share <= bound * (1 + 1e-9)
    else:
        assert measured == [0, steps]


def started(bound: float | None) -> tuple[Clock, Budget]:
    clock = Clock()
    budget = Budget(bound, clock)
    budget.start()
    return clock, budget


def test_the_clock_stops_in_a_pause() -> None:
    clock, budget = started(None)
    clock.now += 10
    budget.stop()
    clock.now += 1000
    budget.start()
    clock.now += 5
    budget.start()
    assert budget.cost == Cost(0.0, 15.0, None)
    with budget.counted():
        clock.now += 2
    budget.stop()
    with budget.counted():
        clock.now += 3
    assert budget.cost == Cost(2.0, 17.0, None)
    assert budget.allows()


def test_every_step_is_counted_and_time_ends_with_the_last() -> None:
    clock, budget = started(0.1)
    for _ in range(10):
        began = budget.start()
        clock.now += 0.5
        budget.spent(began)
        clock.now += 1.5
    clock.now += 1000
    assert budget.cost == Cost(5.0, 18.5, 0.1)
    budget.resume(budget.cost, [0.0])
    assert not budget.allows()  # the steps alone are above the bound


def test_an_expensive_sounding_is_paid_for_before_the_next() -> None:
    clock, budget = started(0.1)
    for seconds in (1.0, 1.0, 30.0, 1.0):
        with budget.counted(is_sounding=True):
            clock.now += seconds
    clock.now += 9 * (33 + 2 * 30) - 1.0  # the next may take as long, and the last too
    assert not budget.allows()
    clock.now += 1.1
    assert budget.allows()
    for _ in range(2):
        with budget.counted(is_sounding=True):
            clock.now += 1.0
    assert budget.allows()  # 35 and 2 of 870 and more: it is forgotten


def test_numbers_on_a_gpu_are_fetched_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "_number", lambda _, value: value)  # as for a tensor on a GPU
    kept = record.Metrics()
    for step in range(3000):
        kept.add(step, {"loss": torch.tensor(float(step)), "count": torch.tensor(step)})
    kept.add(7, {"loss": -1.0})  # what is said last holds
    kept.add(2999, {"loss": torch.tensor(-2.0)})
    found = kept.fetch()
    assert found["loss"] == {**{step: float(step) for step in range(2999)}, 7: -1.0, 2999: -2.0}
    assert found["count"] == {step: float(step) for step in range(3000)}
