"""The dip against its definition, against the package `diptest`, and as a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from fathometer import InputError
from fathometer.compare import dip_statistic, dip_test
from fathometer.compare.summary import _uniform_dips

RNG = np.random.default_rng(7)


def by_definition(values: NDArray[np.float64]) -> float:
    """Min over modes, which may be taken among the values, of a linear programme for F at the values."""
    y, counts = np.unique(values, return_counts=True)
    above = counts.cumsum() / len(values)
    below = above - counts / len(values)
    return min(_with_mode(y, below, above, mode) for mode in range(len(y)))


def _with_mode(y: NDArray[Any], below: NDArray[Any], above: NDArray[Any], mode: int) -> float:
    """Unknowns: F before the mode at y₀ …, just before the mode, at the mode, after it; and the dip."""
    x = np.r_[y[: mode + 1], y[mode:]]
    rows: list[NDArray[np.float64]] = []
    limits: list[float] = []

    def at_most(limit: float, **terms: float) -> None:
        row = np.zeros(len(x) + 1)
        for place, factor in terms.items():
            row[int(place[1:])] += factor
        rows.append(row)
        limits.append(limit)

    dip = f"f{len(x)}"
    for place in range(len(x)):
        value = place if place <= mode else place - 1
        if place != mode + 1:  # continuous there, or the limit from below: F ≤ Fₙ(x−) + dip
            at_most(below[value], **{f"f{place}": 1, dip: -1})
        if place != mode:  # F ≥ Fₙ(x) − dip
            at_most(-above[value], **{f"f{place}": -1, dip: -1})
        if place:
            at_most(0, **{f"f{place - 1}": 1, f"f{place}": -1})
    for place in range(1, len(x) - 1):
        if place in (mode, mode + 1):
            continue
        sign = 1 if place < mode else -1  # convex before the mode, concave after it
        left, right = sign / (x[place] - x[place - 1]), sign / (x[place + 1] - x[place])
        at_most(0, **{f"f{place - 1}": -left, f"f{place}": left + right, f"f{place + 1}": -right})
    cost = np.r_[np.zeros(len(x)), 1]
    return float(linprog(cost, A_ub=np.array(rows), b_ub=limits, bounds=[(0, 1)] * len(cost)).fun)


@pytest.mark.parametrize("kinds", [3, 6, 15, 0])
def test_it_is_the_definition_with_ties_and_without(kinds: int) -> None:
    for _ in range(12):
        count = int(RNG.integers(2, 13))
        values = RNG.integers(kinds, size=count).astype(float) if kinds else RNG.random(count)
        assert dip_statistic(values) == pytest.approx(by_definition(values), abs=1e-9)


def test_it_is_the_packages() -> None:
    diptest = pytest.importorskip("diptest")
    for count in (3, 4, 10, 37, 200):
        for draw in (RNG.random, RNG.standard_normal, RNG.standard_exponential):
            for values in (draw(count), np.r_[draw(count), 3 + draw(count)]):
                theirs = diptest.dipstat(values, allow_zero=False)
                assert dip_statistic(values) == pytest.approx(theirs, abs=1e-12)
    two = np.r_[RNG.normal(0, 1, 30), RNG.normal(2.6, 1, 30)]
    assert dip_test(two)[1] == pytest.approx(diptest.diptest(two)[1], abs=0.03)


def test_closed_forms() -> None:
    assert dip_statistic([0.7] * 9) == 0
    assert dip_statistic(np.arange(8.0)) == pytest.approx(1 / 16)
    assert dip_statistic([0.5] + [1.0] * 20) == pytest.approx(1 / 42)  # an atom at the mode costs nothing
    assert dip_statistic([0.0] * 5 + [1.0] * 5) == 0.25
    values = RNG.random(30)
    assert dip_statistic(7 - 1e-5 * values) == pytest.approx(dip_statistic(values), abs=1e-9)
    with pytest.raises(InputError, match="finite"):
        dip_statistic([0.0, np.nan])


SHAPES: dict[str, Callable[..., Any]] = {
    "normal": RNG.standard_normal,
    "uniform": RNG.random,
    "triangular": lambda size: RNG.triangular(0, 0.3, 1, size),
    "exponential": RNG.standard_exponential,
    "beta": lambda size: RNG.beta(8, 1.5, size),
}


@pytest.mark.parametrize("count", [20, 55])
@pytest.mark.parametrize("shape", SHAPES)
def test_one_mode_of_any_shape_is_one_mode(shape: str, count: int) -> None:
    ps = np.array([dip_test(sample)[1] for sample in SHAPES[shape]((300, count))])
    assert (ps < 0.05).mean() <= 0.08  # 0.05 and two standard errors and a half


def test_uniform_samples_have_any_p() -> None:
    ps = np.array([dip_test(sample)[1] for sample in RNG.random((300, 30))])
    assert 0.4 < (ps < 0.5).mean() < 0.6


@pytest.mark.parametrize(("apart", "least"), [(4.0, 0.45), (6.0, 0.98)])
def test_two_modes_are_found(apart: float, least: float) -> None:
    """Two normal heaps of 25, so many standard deviations apart."""
    samples = np.concatenate([RNG.normal(0, 1, (100, 25)), RNG.normal(apart, 1, (100, 25))], axis=1)
    assert np.mean([dip_test(sample)[1] < 0.05 for sample in samples]) >= least


def test_the_null_law_is_simulated_once() -> None:
    assert _uniform_dips(12) is _uniform_dips(12)
