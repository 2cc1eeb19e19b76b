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


def test_a_shuffled_copy_is_at_distance_zero() -> None:
    x = correlated(40, 5)
    order = np.random.default_rng(0).permutation(40)
    result = wasserstein2(x, x[order])
    assert float(result) == 0.0
    assert result.permutation is not None
    np.testing.assert_array_equal(order[result.permutation], np.arange(40))


@pytest.mark.parametrize("seed", range(3))
def test_one_dimension_by_sorting(seed: int) -> None:
    x, y = correlated(50, 1, seed), correlated(50, 1, seed + 10)
    assert float(wasserstein2(x, y)) == pytest.approx(dense_w2(x, y), abs=1e-12)
    assert wasserstein2(x, np.exp(x)).coupling == "identity"
    assert wasserstein2(x, -x).coupling == "assignment"


def test_ties_are_resolved_in_favour_of_the_identity() -> None:
    x = np.repeat(correlated(5, 2), 4, axis=0)
    assert wasserstein2(x, x).coupling == "identity"
    assert wasserstein2(x[:, :1], x[:, :1]).coupling == "identity"


def test_closed_forms() -> None:
    x = correlated(30, 4)
    assert float(wasserstein2(x, x + 3)) == pytest.approx(6.0)  # means count
    assert float(wasserstein2(np.zeros((1, 2)), np.array([[3.0, 4.0]]))) == 5.0


def test_different_sizes_and_weights_are_pots() -> None:
    x, y = correlated(20, 3), correlated(35, 3, seed=1)
    uneven = np.linspace(1, 2, 20)
    plain, weighted = wasserstein2(x, y), wasserstein2(x, y, x_weights=uneven)
    cost = ot.dist(x, y)
    assert plain.coupling == weighted.coupling == "plan"
    assert plain.distance == pytest.approx(np.sqrt(ot.emd2([], [], cost)), abs=1e-10)
    assert weighted.plan is not None
    np.testing.assert_allclose(weighted.plan.sum(1), uneven / uneven.sum())
    assert weighted.distance == pytest.approx(np.sqrt((weighted.plan * cost).sum()), abs=1e-12)


def test_without_pot_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fathometer\[pot\]'"):
        wasserstein2(correlated(4, 2), correlated(5, 2))


def _score_an_assignment() -> float:
    return float(wasserstein2(correlated(20, 2), correlated(20, 2, 1)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_solvers_of_its_own() -> None:
    here = _score_an_assignment()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_score_an_assignment).get(timeout=30) == here


def test_bad_input() -> None:
    for scale in (1e200, 1e-200):
        with pytest.raises(InputError, match="expected a spread"):
            wasserstein2(correlated(4, 2) * scale, correlated(4, 2))
    with pytest.raises(InputError, match="as many features"):
        wasserstein2(correlated(4, 2), correlated(4, 3))
    with pytest.raises(InputError, match="x_weights: expected 4 finite numbers"):
        wasserstein2(correlated(4, 2), correlated(4, 2), x_weights=[1, 1])
