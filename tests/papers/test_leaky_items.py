"""What decides the claims on Leaky ResNets: inputs for which each must hold, and for which it must not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from fathometer.leaky import criticality
from fathometer.leaky.theory import theorem_4
from fathometer.leaky.theory.statement import at_least, equal
from papers.item import Item, NotDecided, RunContext
from papers.leaky import (
    figure_1,
    figure_2,
    figure_3,
    identity,
    lagrangian,
    networks,
    proposition_5,
    proposition_9,
)
from papers.leaky import theorem_4 as theorem
from papers.leaky.instances import SmoothCurve, cost_and_gradient, drawn
from papers.leaky.statements import Checked, counted, of, statement_table, verified
from papers.verdict import answer, rounded

DEPTHS = (1.0, 2.0, 3.0, 5.0, 8.0, 11.0)


def over_depths(**columns: Any) -> pd.DataFrame:
    """A row for each L̃ and each of five seeds, which differ by a thousandth; columns are functions of L̃."""
    rows = [
        {
            "effective_depth": depth,
            "seed": seed,
            **{n: (1 + 0.001 * (seed - 2)) * f(depth) for n, f in columns.items()},
        }
        for depth in DEPTHS
        for seed in range(5)
    ]
    return pd.DataFrame(rows)


def decided(item: Item, evidence: Any, *names: str) -> dict[str, bool | None]:
    """Answer claims of an item, all or some, with a few simulated experiments."""
    return {name: answer(item.claims[name], evidence, 50).holds for name in names or item.claims}


class TestNetworks:
    def test_the_published_sizes(self) -> None:
        designs, recipe = networks.depth_plan("paper")
        assert len(designs) == 8 * 5
        assert {(d.width, d.samples, d.layers) for d in designs} == {(100, 1000, 20)}
        assert recipe.epochs == 16_000
        assert len(networks.scheme_plan("paper").designs) == 6 * 3 * 16

    def test_networks_are_trained_once_and_facts_are_recorded(self, tmp_path: Path) -> None:
        context = RunContext("smoke", "cpu", tmp_path, tmp_path)
        first, again = networks.depth_networks(context), networks.depth_networks(context)
        assert [run.train_error for run in first.runs] == [run.train_error for run in again.runs]
        assert (context.facts["loose"], context.facts["networks"]) == (6, 6)
        assert {run.design.effective_depth for run in networks.usual_depth(first)} == {7.0}


def test_the_hamiltonian_must_approach_the_rank_over_all_depths() -> None:
    table = over_depths(
        hamiltonian=lambda depth: 3 - 2 / depth,
        hamiltonian_stable=lambda depth: 2.9 if depth == 1 else 3 - 2 / depth,  # near 3 at once, then far
        cost_of_identity=lambda depth: 3.05 + 20 * np.exp(-depth),
    )
    found = decided(figure_1.FIGURE_1A, table)
    assert (found["hamiltonian"], found["cost"], found["cost_3"]) == (True, True, True)
    assert (found["stable"], found["stable_3"]) == (False, True)
    above = table.assign(hamiltonian=table["hamiltonian"] + 0.5)  # crosses 3
    assert decided(figure_1.FIGURE_1A, above, "hamiltonian") == {"hamiltonian": False}
    far = table.assign(cost_of_identity=table["cost_of_identity"] + 1)
    assert decided(figure_1.FIGURE_1A, far, "cost") == {"cost": False}
    assert decided(figure_1.FIGURE_1A, table[table["seed"] == 0], "cost") == {"cost": None}


SPECTRUM = {"depth": 7.0, "rank": 3, "weights_gap": 50.0, "weights_largest": 3, "gap": 20.0, "largest": 3}
SPECTRUM |= {"share": 0.8, "first": 6.0, "least": 3.0, "last": 5.0}
ENERGIES = dict.fromkeys(["kinetic_first", "kinetic_last", "extra_first", "extra_last"], 100.0)
ENERGIES |= {"spread": 0.01, "spread_stable": 0.02, "alike": 0.99, "slope": 1.0}


@pytest.mark.parametrize(
    ("item", "row", "change", "claim"),
    [
        (figure_1.FIGURE_1B, SPECTRUM, {"rank": 4}, "weights"),
        (figure_1.FIGURE_1B, SPECTRUM, {"weights_gap": 2.0}, "weights"),
        (figure_1.FIGURE_1B, SPECTRUM, {"largest": 2}, "representations"),
        (figure_1.FIGURE_1B, SPECTRUM, {"share": 0.5}, "most"),
        (figure_1.FIGURE_1B, SPECTRUM, {"last": 3.5}, "ends"),
        (figure_1.FIGURE_1C, ENERGIES, {"spread_stable": 0.2}, "varies"),
        (figure_1.FIGURE_1C, ENERGIES, {"slope": 0.5}, "proportional"),
        (figure_1.FIGURE_1C, ENERGIES, {"extra_last": 2.0}, "ends"),
    ],
)
def test_one_seed_that_differs_fails_one_claim(
    item: Item, row: dict[str, float], change: dict[str, float], claim: str
) -> None:
    assert all(decided(item, pd.DataFrame([row, row])).values())
    found = decided(item, pd.DataFrame([row, row | change]))
    assert [name for name, holds in found.items() if not holds] == [claim]


def errors(gains: Mapping[str, float], by_layers: float = 0.0, gap: float = 0.0) -> figure_2.Errors:
    """Test errors of three schemes, eight seeds, better by shares of the error 0.4."""
    rows = [
        (layers, scheme, seed, 0.4 * (1 + 0.1 * seed - gains.get(scheme, 0.0) - by_layers * (layers > 4)))
        for layers in (4, 6, 18)
        for scheme in networks.SCHEMES
        for seed in range(8)
    ]
    table = pd.DataFrame(rows, columns=["layers", "scheme", "seed", "test_error"])
    table["test_error"] += 0.0004 * np.random.default_rng(0).normal(size=len(table))
    table["gap"] = 10 * np.exp(gap * (table["layers"] > 4)) + 0.01 * table["seed"]
    base = table[table["scheme"] == "equidistant"].drop(columns="scheme")
    pairs = table[table["scheme"] != "equidistant"].merge(base, on=["layers", "seed"], suffixes=("", "_base"))
    return figure_2.Errors(table, pairs.assign(difference=pairs["test_error"] - pairs["test_error_base"]))


def test_advantages_of_step_schemes() -> None:
    both = decided(figure_2.FIGURE_2A, errors({"adaptive": 0.01, "irregular": 0.01}, 0.05, 1.0))
    assert set(both.values()) == {True}
    one = decided(figure_2.FIGURE_2A, errors({"adaptive": 0.01, "irregular": -0.01}))
    expected = {
        "adaptive": True,
        "irregular": False,
        "consistent": False,
        "layers": False,
        "separation": False,
    }
    assert one == expected
    few = errors({"adaptive": 0.01})
    few.differences["difference"] += np.random.default_rng(1).normal(0, 0.1, len(few.differences))
    assert decided(figure_2.FIGURE_2A, few, "adaptive") == {"adaptive": None}  # too little power


def test_where_the_steps_are() -> None:
    row = {"first": 9, "last": 6, "last_step": 1.0, "longest_step": 2.0}
    row |= {"middle": 3, "dimension": 6.0, "dimension_half": 3.0, "stable": 5.0}
    assert set(decided(figure_2.FIGURE_2B, pd.DataFrame([row, {**row, "middle": 2.9}, row])).values()) == {
        True
    }
    row |= {"middle": 6, "last": 3, "dimension": 4.0}
    found = decided(figure_2.FIGURE_2B, pd.DataFrame([row, {**row, "middle": 5.9}, row]))
    assert found == {"beginning": True, "end": False, "six": False}


def test_how_evenly_steps_are_spread() -> None:
    def table(adaptive: float) -> pd.DataFrame:
        values = {"adaptive": adaptive, "equidistant": 0.4, "irregular": 0.4}
        rows = [
            (name, seed, value + 0.01 * seed * (name == "adaptive"))
            for seed in range(4)
            for name, value in values.items()
        ]
        return pd.DataFrame(rows, columns=["scheme", "seed", "distances"]).assign(
            plane=lambda t: t["distances"]
        )

    assert decided(figure_2.FIGURE_2C, table(0.1)) == {"distances": True, "plane": True}
    assert decided(figure_2.FIGURE_2C, table(0.6)) == {"distances": False, "plane": False}


def test_what_grows_with_the_depth_is_not_bounded() -> None:
    columns = {"momentum": -0.1, "momentum_sigma": -0.1, "length_per_root_n": 0.0, "length_kernel": 0.0}

    def table(**powers: float) -> pd.DataFrame:
        found = over_depths()
        near = 0.01 * (found["seed"] - 2)
        return found.assign(
            **{n: found["effective_depth"] ** (p + near) for n, p in (columns | powers).items()}
        )

    assert figure_3.powers(table(momentum=0.7), "momentum")[2] == pytest.approx(0.7)
    assert set(decided(figure_3.FIGURE_3, table()).values()) == {True}
    found = decided(figure_3.FIGURE_3, table(length_per_root_n=0.7))
    assert [name for name, holds in found.items() if not holds] == ["bounded", "length"]


def checked(**sides: float) -> list[Checked]:
    return [
        Checked(kind, "seed 0", 2.0, at_least("Proposition 0", "left ≥ 1", left, 1.0))
        for kind, left in sides.items()
    ]


def test_a_statement_that_fails_is_named() -> None:
    claim = verified("words", "test", of("Proposition 0"))
    good, bad = checked(drawn=2.0, solved=2.0), checked(drawn=2.0, trained=0.5)
    assert answer(claim, good, 0).holds is True
    found = answer(claim, bad, 0)
    assert found.holds is False
    assert "fails for trained seed 0" in claim.sentence(found.numbers)
    assert "1 of 1 drawn, 0 of 1 trained" in claim.sentence(found.numbers)
    assert statement_table(bad)["holds"].tolist() == [True, False]
    assert answer(claim, [], 0).holds is None
    both = [*good, Checked("solved", "", 2.0, equal("b", "", 1, 1, error=1e-3, tolerance=1e-2, measure=""))]
    assert (counted(both)["margin"], counted(both)["error"]) == (1.0, 1e-3)


def test_descent_leads_to_a_whole_number() -> None:
    starts = torch.stack([drawn(seed, 8, 2) for seed in (2, 3)])
    costs, negative = identity.descend(starts, 2000)
    assert costs == pytest.approx([2.0, 2.0], abs=1e-3)
    assert negative.max() < 0.01
    claim = identity.PROPOSITION_2.claims["minima"]
    for cost, share, holds in ((3.001, 0.01, True), (2.6, 0.01, False), (3.0, 0.2, False)):
        minima = pd.DataFrame({"cost": [3.0, cost], "negative": [0.0, share]})
        assert answer(claim, identity.Evidence2([], minima), 0).holds is holds


def negative(ranks: float = 3.0, **columns: Any) -> pd.DataFrame:
    table = over_depths(at_half=lambda depth: 0.3 / depth**2, **columns)
    return table.assign(rank=ranks, gap=50.0, critical=1.0)


def test_the_negative_part_must_vanish() -> None:
    item = proposition_5.PROPOSITION_5
    found = decided(item, negative(at_least_cost=lambda depth: 0.3 / depth**2))
    assert found == {"slow": True, "half": True, "ranks": None}  # all ranks are 3: nothing is decided
    assert decided(item, negative(at_least_cost=lambda depth: 0.3 / depth), "slow")["slow"] is True
    assert decided(item, negative(at_least_cost=lambda depth: 1 / depth), "slow")["slow"] is False
    assert decided(item, negative(at_least_cost=lambda depth: 0.001 * depth), "slow")["slow"] is False
    for ranks, holds in ((4.0, True), (6.0, False)):
        assert (
            decided(item, negative(ranks, at_least_cost=lambda depth: 0.1 / depth), "ranks")["ranks"] is holds
        )


@pytest.mark.parametrize(("factor", "printed", "corrected"), [(1.01, True, False), (2.0, False, True)])
def test_the_factor_of_proposition_9(factor: float, printed: bool, corrected: bool) -> None:
    evidence = proposition_9.Evidence([], [factor], [factor], [])
    found = decided(proposition_9.PROPOSITION_9, evidence, "letter", "growth")
    assert found == {"letter": printed, "growth": corrected}


def networks_of_theorem_4(**columns: Any) -> theorem.Evidence:
    usual: dict[str, Any] = {
        "slow": lambda _: 1.0,
        "fast": lambda depth: depth,
        "distance": lambda depth: 2 / depth**2,
        "jump": lambda _: 1e-3,
        "sizes": lambda _: 4.0,
        "momenta": lambda _: 8.0,
    }
    return theorem.Evidence([], over_depths(**usual | columns).assign(critical=1.0))


@pytest.mark.parametrize(
    ("change", "claim"),
    [
        ({"distance": lambda depth: depth}, "close"),
        ({"slow": lambda depth: depth}, "timescales"),
        ({"fast": lambda depth: depth**0.5}, "timescales"),
        ({"jump": lambda _: 0.5}, "jumps"),
        ({"sizes": lambda _: 40.0}, "sizes"),
    ],
)
def test_what_follows_from_theorem_4(change: dict[str, Any], claim: str) -> None:
    names = ("close", "timescales", "jumps", "sizes")
    assert set(decided(theorem.THEOREM_4, networks_of_theorem_4(), *names).values()) == {True}
    found = decided(theorem.THEOREM_4, networks_of_theorem_4(**change), *names)
    assert [name for name, holds in found.items() if not holds] == [claim]


def test_networks_that_are_not_critical_decide_nothing() -> None:
    evidence = networks_of_theorem_4()
    with pytest.raises(NotDecided, match="no network with L̃ ≥ 5"):
        theorem.critical_rows(evidence._replace(networks=evidence.networks.assign(critical=0.0)), 5.0)


def test_the_counterexample_to_the_printed_theorem_4_is_critical() -> None:
    path = theorem.counterexample()
    assert criticality(path).max() < 1e-12
    assert bool((path.representations < 0).all())
    found = theorem_4(path, gamma=1.0)
    assert all(statement.holds for statement in found)
    assert found[0].left < found[0].paper


def test_the_gradient_of_the_cost_and_the_velocity_of_a_curve() -> None:
    a = drawn(0, 2, 8, 3).requires_grad_()
    cost, gradient = cost_and_gradient(a)
    (expected,) = torch.autograd.grad(cost.sum(), a)
    torch.testing.assert_close(gradient.detach(), expected)
    curve, step = SmoothCurve(1, 0.5), 1e-5
    for p in (0.2, 0.9):
        slope = (curve.at(p + step) - curve.at(p - step)) / (2 * step)
        torch.testing.assert_close(slope, curve.velocity(p), atol=1e-8, rtol=1e-8)
    for p in (0.0, 1.0):
        torch.testing.assert_close(SmoothCurve(1, 0.0).at(p), curve.at(p))


def test_footnote_1_needs_linear_networks() -> None:
    table = lagrangian.curve_table(range(1))
    linear, nonlinear = table[table["sigma"] == "identity"], table[table["sigma"] == "relu"]
    assert linear["integral"].to_list() == pytest.approx(linear["ends"].to_list())
    assert nonlinear["integral"].max() > 1.1 * nonlinear["integral"].min()


def test_every_sentence_can_be_written_from_recorded_numbers() -> None:
    """Of one item of each kind; the smoke runs do the rest."""
    claim = figure_1.FIGURE_1B.claims["weights"]
    numbers = rounded(claim.measure(pd.DataFrame([SPECTRUM, SPECTRUM])))
    assert claim.sentence(numbers) == "rank 3, 3 by seed at L̃ = 7, 7; s₃/s₄ of W is 50, 50"
