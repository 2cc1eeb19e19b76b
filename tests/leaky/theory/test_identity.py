"""Propositions 1, 2 and 3 on representations drawn at random."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fathometer.errors import InputError
from fathometer.leaky.measures import measure_path
from fathometer.leaky.path import path_through
from fathometer.leaky.theory import added_neuron, constant_cost_path, path_to_a_saddle, stable_rank_bound
from papers.leaky.instances import drawn

SEEDS = st.integers(0, 10_000)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 12), st.integers(1, 8), st.floats(-1, 1))
def test_the_cost_is_at_least_the_stable_rank(seed: int, width: int, samples: int, shift: float) -> None:
    a = drawn(seed, width, samples) + shift
    assert stable_rank_bound(a).holds
    for gamma in (1e-3, 1.0, 100.0):
        found = stable_rank_bound(a, gamma)
        assert found.holds
        assert found.margin >= -1e-9 * found.right


def test_both_sides_of_proposition_1_meet_where_all_singular_values_are_equal() -> None:
    found = stable_rank_bound(torch.eye(4).double())
    assert found.left == pytest.approx(4)
    assert found.margin == pytest.approx(0, abs=1e-12)


def test_the_pseudo_inverse_alone_violates_proposition_1() -> None:
    found = stable_rank_bound(-torch.ones(1, 1).double())
    assert found.left == math.inf
    assert found.details["paper_left"] == 0 < found.right
    assert found.holds
    assert found.note


@pytest.mark.parametrize("negative", [1e-4, 1e-8, 1e-12, 0.0])
def test_there_is_one_exact_cost(negative: float) -> None:
    a = torch.cat([drawn(0, 3, 9).abs(), torch.full((1, 9), -negative).double()])
    table = measure_path(path_through(a.expand(2, -1, -1)), affinity=False).points
    expected = math.inf if negative > 1e-10 else 3.0
    assert stable_rank_bound(a).left == table["cost_of_identity_exact"][0] == pytest.approx(expected)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_an_added_neuron_lowers_the_cost_as_predicted(seed: int) -> None:
    a = drawn(seed, 30, 5)
    found = added_neuron(a)
    assert found.holds
    assert found.left == pytest.approx(found.right, rel=1e-4)
    assert found.details["decreases"] == found.details["ratio_tends_to_1"] == 1
    assert found.details["off_closed_form"] < 1e-8
    assert found.details["ratio_1"] == pytest.approx(1 / 1.1, rel=1e-6)


@pytest.mark.parametrize(("gamma", "falls"), [(0.1, True), (100.0, False)])
def test_with_gamma_the_cost_may_be_infinite_and_falls_if_gamma_is_small(gamma: float, falls: bool) -> None:
    a = drawn(0, 5, 20)
    with pytest.raises(InputError, match="infinite"):
        added_neuron(a)
    found = added_neuron(a, gamma=gamma)
    assert found.holds
    assert (found.right > 0) is falls
    assert found.details["decreases"] == falls


@pytest.mark.parametrize(("width", "samples", "seed"), [(7, 2, 1), (40, 3, 0), (60, 4, 1), (13, 3, 2)])
def test_the_path_of_proposition_3(width: int, samples: int, seed: int) -> None:
    a = drawn(seed, width, samples)
    path = constant_cost_path(a)
    kept = int((path.coefficients > 0).sum())
    assert kept <= samples * (samples + 1)
    assert bool((path.coefficients >= 0).all())
    assert torch.equal(path.at(0), a)
    constant, empty, falls = path_to_a_saddle(a)
    assert constant.holds
    assert constant.error < 1e-10
    assert empty.holds
    assert empty.left == width - kept >= 1
    assert falls.holds
    assert falls.left > 0


def test_another_path_is_not_of_constant_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    def halved(a: torch.Tensor) -> object:
        path = constant_cost_path(a)
        path.coefficients.mul_(torch.linspace(0.5, 1, len(a)))
        return path

    monkeypatch.setattr("fathometer.leaky.theory.identity.constant_cost_path", halved)
    assert not path_to_a_saddle(drawn(0, 40, 3))[0].holds


def test_representations_to_which_a_proposition_does_not_apply_are_refused() -> None:
    with pytest.raises(InputError, match="no negative entry"):
        added_neuron(drawn(0, 5, 3).abs())
    with pytest.raises(InputError, match="width > N"):
        constant_cost_path(drawn(0, 6, 2))
    with pytest.raises(InputError, match="matrix"):
        stable_rank_bound(drawn(0, 6))
