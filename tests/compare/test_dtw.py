from __future__ import annotations

import time
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fathometer import InputError
from fathometer.compare import dtw, dtw_matrix, dtw_path
from fathometer.compare.distance import _PAIRS

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def tslearn() -> Any:
    import_module("numba").config.DISABLE_JIT = True  # compiling takes longer than these loops
    return import_module("tslearn.metrics")


def series(count: int, low: int, high: int) -> list[NDArray[np.float64]]:
    return [RNG.random(length) for length in RNG.integers(low, high, count)]


def test_the_matrix_is_that_of_tslearn(tslearn: Any) -> None:
    some = series(20, 1, 40)
    theirs = np.array([[tslearn.dtw(a, b) for b in some] for a in some])
    assert np.abs(dtw_matrix(some) - theirs).max() < 1e-12


def test_more_series_than_a_piece_holds(tslearn: Any) -> None:
    some = series(_PAIRS + 20, 1, 6)
    found = dtw_matrix(some)
    for i, j in RNG.integers(len(some), size=(200, 2)):
        assert abs(found[i, j] - tslearn.dtw(some[i], some[j])) < 1e-12


def test_one_pair_whatever_the_order(tslearn: Any) -> None:
    for a, b in zip(series(20, 1, 30), series(20, 1, 30), strict=True):
        assert abs(dtw(a, b) - tslearn.dtw(a, b)) < 1e-12
        assert dtw(a, b) == dtw(b, a)


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


def test_identity_symmetry_and_the_euclidean_bound() -> None:
    some = series(30, 12, 13)
    found = dtw_matrix(some)
    assert (found == found.T).all()
    assert not np.diagonal(found).any()
    euclidean = np.array([[np.linalg.norm(a - b) for b in some] for a in some])
    assert (found <= euclidean + 1e-12).all()
    assert (found < euclidean - 0.01).any()


def test_it_is_no_metric() -> None:
    """The triangle inequality does not hold, which the documents say."""
    a, b, c = [0.0], [0.0, 1.0], [1.0] * 5
    assert (dtw(a, b), dtw(b, c)) == (1, 1)
    assert dtw(a, c) == pytest.approx(np.sqrt(5))


@pytest.mark.parametrize(
    ("bad", "words"),
    [([], "at least one number"), ([[1.0, 2.0]], "shape"), ([1.0, np.nan], "finite"), ([np.inf], "finite")],
)
def test_what_is_no_series_is_refused(bad: list[float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        dtw(bad, [1.0])
    with pytest.raises(InputError, match=words):
        dtw_path([1.0], bad)


def test_it_is_fast_enough() -> None:
    """1000 signatures within a minute: 200 of them, a twenty-fifth of the pairs, well within 2.4 s."""
    some = series(200, 20, 151)
    best = min(_seconds(some) for _ in range(2))
    assert best < 2.4


def _seconds(some: list[NDArray[np.float64]]) -> float:
    started = time.process_time()
    dtw_matrix(some)
    return time.process_time() - started
