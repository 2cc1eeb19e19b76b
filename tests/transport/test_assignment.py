from __future__ import annotations

import multiprocessing
import os
import sys

import numpy as np
import ot
import pytest

from fathometer.errors import InputError, MissingExtraError
from fathometer.transport import wasserstein2
from tests.data import correlated, relu
from tests.reference import dense_w2


def test_wide_activations_need_no_search() -> None:
    x = correlated(100, 60)
    result = wasserstein2(x, relu(x))
    assert result.coupling == "identity"
    assert result.permutation is None
    assert float(result) == pytest.approx(dense_w2(x, relu(x)), abs=1e-12)


def test_a_pair_whose_best_coupling_is_not_the_identity() -> None:
    x, y = correlated(60, 3), correlated(60, 3, seed=1)
    result = wasserstein2(x, y)
    assert result.coupling == "assignment"
    assert result.permutation is not None
    assert sorted(result.permutation) == list(range(60))
    assert result.distance == pytest.approx(dense_w2(x, y), abs=1e-12)
    assert result.distance < np.sqrt(((x - y) ** 2).sum(1).mean())


@pytest.mark.parametrize("seed", range(3))
def test_one_dimension_by_sorting(seed: int) -> None:
    x, y = correlated(50, 1, seed), correlated(50, 1, seed + 10)
    assert float(wasserstein2(x, y)) == pytest.approx(dense_w2(x, y), abs=1e-12)
    assert wasserstein2(x, np.exp(x)).coupling == "identity"
    assert wasserstein2(x, -x).coupling == "assignment"


def test_closed_forms() -> None:
    x = correlated(40, 4)
    assert float(wasserstein2(x, x + 3)) == pytest.approx(6.0)  # means count
    assert float(wasserstein2(np.zeros((1, 2)), np.array([[3.0, 4.0]]))) == 5.0
    order = np.random.default_rng(0).permutation(40)
    shuffled = wasserstein2(x, x[order])
    assert float(shuffled) == 0.0
    assert shuffled.permutation is not None
    np.testing.assert_array_equal(order[shuffled.permutation], np.arange(40))
    repeated = np.repeat(x[:5], 4, axis=0)  # ties are resolved in favour of the identity
    assert wasserstein2(repeated, repeated).coupling == "identity"
    assert wasserstein2(repeated[:, :1], repeated[:, :1]).coupling == "identity"


def test_samples_of_different_size_are_pots(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = correlated(20, 3), correlated(35, 3, seed=1)
    result, cost = wasserstein2(x, y), ot.dist(x, y)
    assert (result.coupling, result.permutation) == ("plan", None)
    assert result.distance == pytest.approx(np.sqrt(ot.emd2([], [], cost)), abs=1e-10)
    assert result.plan is not None
    np.testing.assert_allclose(result.plan.sum(1), np.full(20, 1 / 20))
    assert result.distance == pytest.approx(np.sqrt((result.plan * cost).sum()), abs=1e-12)
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fathometer\[pot\]'"):
        wasserstein2(x, y)


def test_impossible_samples_are_refused() -> None:
    for scale in (1e200, 1e-200):
        with pytest.raises(InputError, match="expected a spread"):
            wasserstein2(correlated(4, 2) * scale, correlated(4, 2))
    with pytest.raises(InputError, match="as many features"):
        wasserstein2(correlated(4, 2), correlated(4, 3))


def _score_an_assignment() -> float:
    return float(wasserstein2(correlated(20, 2), correlated(20, 2, 1)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_solvers_of_its_own() -> None:
    here = _score_an_assignment()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_score_an_assignment).get(timeout=30) == here
