from __future__ import annotations

import time
import timeit
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fathometer import InputError
from fathometer.compare import dtw, dtw_matrix, dtw_path
from fathometer.compare.series import _PAIRS

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def tslearn() -> Any:
    import_module("numba").config.DISABLE_JIT = True  # compiling takes longer than these loops
    return import_module("tslearn.metrics")


def series(count: int, low: int, high: int) -> list[NDArray[np.float64]]:
    return [RNG.random(length) for length in RNG.integers(low, high, count)]


def test_distances_match_tslearn(tslearn: Any) -> None:
    some = [*series(_PAIRS + 5, 1, 6), *series(15, 1, 40)]
    found = dtw_matrix(some)
    assert (found == found.T).all()
    for i, j in RNG.integers(len(some), size=(300, 2)):
        assert abs(found[i, j] - tslearn.dtw(some[i], some[j])) < 1e-12


def test_the_path_is_allowed_and_costs_the_distance(tslearn: Any) -> None:
    for a, b in zip(series(20, 1, 25), series(20, 1, 25), strict=True):
        path, distance = dtw_path(a, b)
        assert path[0] == (0, 0)
        assert path[-1] == (len(a) - 1, len(b) - 1)
        steps = {(i - k, j - m) for (k, m), (i, j) in pairwise(path)}
        assert steps <= {(1, 1), (0, 1), (1, 0)}
        cost = np.sqrt(sum((a[i] - b[j]) ** 2 for i, j in path))
        assert abs(cost - distance) < 1e-12
        assert abs(distance - tslearn.dtw_path(a, b)[1]) < 1e-12


def test_closed_forms() -> None:
    assert dtw([1.0], [0.0, 2.0, 4.0]) == pytest.approx(np.sqrt(1 + 1 + 9), abs=1e-15)
    assert dtw([0, 1, 2], np.repeat([0, 1, 2], 5)) == 0  # slower is no difference
    assert dtw([0, 1], [1, 0]) == pytest.approx(np.sqrt(2))


def test_the_triangle_inequality_fails() -> None:
    a, b, c = [0.0], [0.0, 1.0], [1.0] * 5
    assert (dtw(a, b), dtw(b, c)) == (1, 1)
    assert dtw(a, c) == pytest.approx(np.sqrt(5))


def plainly(a: NDArray[np.float64], b: NDArray[np.float64], band: float) -> float:
    """The normalised distance, cell by cell."""
    n, m = len(a), len(b)
    limit = max(band, 0.5 / n + 0.5 / m) + 1e-12
    total = np.full((n + 1, m + 1), np.inf)
    for i, j in np.ndindex(n, m):
        if abs((i + 0.5) / n - (j + 0.5) / m) <= limit:
            cost = (a[i] - b[j]) ** 2
            start = 0 if i == j == 0 else total[i, j]
            total[i + 1, j + 1] = min(start + 2 * cost, total[i, j + 1] + cost, total[i + 1, j] + cost)
    return float(np.sqrt(total[n, m] / (n + m)))


@pytest.mark.parametrize("band", [None, 0.1, 0.0])
def test_normalised_distances_match_a_plain_loop(band: float | None) -> None:
    some = [*series(20, 1, 6), *series(10, 1, 40)]
    found = dtw_matrix(some, normalise=True, band=band)
    assert np.isfinite(found).all()
    for i, j in RNG.integers(len(some), size=(100, 2)):
        if i != j:
            assert found[i, j] == pytest.approx(
                plainly(some[i], some[j], 1.0 if band is None else band), abs=1e-12
            )


def test_normalised_distances_do_not_grow_with_depth() -> None:
    a, b = RNG.random(20), RNG.random(20)
    short, long = (
        dtw_matrix([np.repeat(x, times) for x in (a, b)], normalise=True)[0, 1] for times in (1, 10)
    )
    assert long <= short
    assert dtw_matrix([np.zeros(9), np.ones(200)], normalise=True)[0, 1] == 1


@pytest.mark.parametrize(("bad", "words"), [([], "at least one number"), ([1.0, np.nan], "finite")])
def test_bad_series_are_refused(bad: list[float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        dtw(bad, [1.0])


def test_a_thousand_series_would_take_less_than_a_minute() -> None:
    """200 of them, a twenty-fifth of the pairs, in 2.4 s."""
    some = series(200, 20, 151)
    assert min(timeit.repeat(lambda: dtw_matrix(some), timer=time.process_time, number=1, repeat=2)) < 2.4
