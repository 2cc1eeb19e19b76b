"""What decides the claims on Leaky ResNets: inputs for which each must hold, and for which it must not."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from fathometer.leaky import criticality
from fathometer.leaky.theory import Statement, theorem_4
from fathometer.leaky.theory.statement import at_least
from papers.item import RunContext
from papers.leaky import (
    figure_1a,
    figure_1b,
    figure_1c,
    figure_2a,
    figure_2b,
    figure_2c,
    figure_3,
    footnote_1,
    networks,
    proposition_2,
    proposition_5,
    proposition_9,
)
from papers.leaky import theorem_4 as theorem
from papers.leaky.instances import (
    SmoothCurve,
    cost_and_gradient,
    drawn,
    solved,
)
from papers.leaky.statements import CheckedStatement, every, held, statement_table
from papers.leaky.trends import power

DEPTHS = (2.0, 3.0, 5.0, 8.0, 11.0)


def over_depths(value: dict[float, float] | None = None, /, **columns: float) -> pd.DataFrame:
    """A row for each L̃ and each of three seeds, which differ by a thousandth; columns are powers of L̃."""
    rows = []
    for depth in DEPTHS:
        for seed in range(3):
            near = 1 + 0.001 * (seed - 1)
            row = {"effective_depth": depth, "seed": seed, **{n: near * depth**p for n, p in columns.items()}}
            rows.append(row | ({"value": near * value[depth]} if value else {}))
    return pd.DataFrame(rows)


class TestNetworks:
    def test_the_published_sizes(self) -> None:
        designs, recipe = networks.depth_plan("paper")
        assert len(designs) == 8 * 5
        assert {(d.width, d.samples, d.layers) for d in designs} == {(100, 1000, 20)}
        assert recipe.epochs == 16_000
        assert len(networks.scheme_plan("paper").designs) == 6 * 3 * 16

    def test_networks_are_trained_once_and_warnings_become_notes(self, tmp_path: Path) -> None:
        context = RunContext("smoke", "cpu", tmp_path, tmp_path)
        first, again = networks.depth_networks(context), networks.depth_networks(context)
        assert [run.train_error for run in first.runs] == [run.train_error for run in again.runs]
        assert len(context.notes) == 1
        assert "6 of 6 networks are not at a critical point" in context.notes[0]
        assert list(networks.by_seed(first)) == [0, 1]
        assert {run.design.effective_depth for run in networks.usual_depth(first)} == {7.0}


class TestFigure1:
    def test_from_above(self) -> None:
        table = over_depths({2.0: 1.0, 3.0: 20.0, 5.0: 9.0, 8.0: 4.0, 11.0: 3.1})
        assert figure_1a.approach(table, "value", "above", 3.0).holds
        assert not figure_1a.approach(table, "value", "above").holds

    @pytest.mark.parametrize("values", [(1.0, 2.5, 2.0, 2.9), (0.5, 1.0, 2.0, 2.5), (1.0, 2.0, 3.2, 2.9)])
    def test_not_from_below(self, values: tuple[float, ...]) -> None:
        table = over_depths(dict(zip(DEPTHS, (9.0, *values), strict=True)))
        assert not figure_1a.approach(table, "value", "below", 3.0).holds

    def spectra(self, **changes: object) -> pd.DataFrame:
        row = {"rank": 3, "weights_gap": 50.0, "weights_largest": True, "gap": 20.0, "largest": True}
        row |= {"share": 0.8, "dimension_first": 6.0, "dimension_least": 3.0, "dimension_last": 5.0}
        return pd.DataFrame([row, row | changes])

    @pytest.mark.parametrize(
        ("claim", "changes"),
        [
            ("weights", {"rank": 4}),
            ("weights", {"weights_gap": 2.0}),
            ("representations", {"largest": False}),
            ("most", {"share": 0.5}),
            ("ends", {"dimension_last": 3.5}),
        ],
    )
    def test_a_bottleneck(self, claim: str, changes: dict[str, object]) -> None:
        assert all(answer.holds for answer in figure_1b.answers(self.spectra(), 7.0).values())
        found = figure_1b.answers(self.spectra(**changes), 7.0)
        assert [name for name, answer in found.items() if not answer.holds] == [claim]

    def test_energies(self) -> None:
        row = dict.fromkeys(["kinetic_first", "kinetic_last", "extra_first", "extra_last"], 100.0)
        row |= {"spread": 0.01, "spread_stable": 0.02, "alike": 0.99, "slope": 1.0}
        found = figure_1c.answers(pd.DataFrame([row, row]), 7.0)
        assert all(answer.holds for answer in found.values())
        for claim, column, value in (
            ("varies", "spread_stable", 0.2),
            ("proportional", "slope", 0.5),
            ("ends", "extra_last", 2.0),
        ):
            found = figure_1c.answers(pd.DataFrame([row, {**row, column: value}]), 7.0)
            assert [name for name, answer in found.items() if not answer.holds] == [claim]

    def test_conserved(self) -> None:
        assert figure_1c.conserved([1e-7], [[1.0, 0.5, 0.25]]).holds
        assert not figure_1c.conserved([1e-7], [[1.0, 0.5, 0.4]]).holds
        assert not figure_1c.conserved([1e-3], [[1.0, 0.5, 0.25]]).holds


def errors(gain: float, by_layers: float) -> pd.DataFrame:
    """Test errors of three schemes, eight seeds; adaptive steps are better by `gain`."""
    rows = [
        (layers, scheme, seed, 0.4 + 0.05 * seed - by_layers * layers - (gain if scheme == "adaptive" else 0))
        for layers in (4, 18)
        for scheme in networks.SCHEMES
        for seed in range(8)
    ]
    table = pd.DataFrame(rows, columns=["layers", "scheme", "seed", "test_error"])
    table["test_error"] += 0.001 * np.cos(np.arange(len(table)))  # something that differs between seeds
    return table


def differences(table: pd.DataFrame) -> pd.DataFrame:
    base = table[table["scheme"] == "equidistant"].drop(columns="scheme")
    pairs = table[table["scheme"] != "equidistant"].merge(base, on=["layers", "seed"], suffixes=("", "_base"))
    return pairs.assign(difference=pairs["test_error"] - pairs["test_error_base"])


class TestFigure2:
    def test_an_advantage_within_seeds(self) -> None:
        found = differences(errors(0.01, 0.0))
        assert figure_2a.advantage(found, "adaptive", 0.4).holds
        assert not figure_2a.advantage(found, "irregular", 0.4).holds

    def test_more_layers(self) -> None:
        assert figure_2a.more_layers(errors(0.0, 0.002)).holds
        assert not figure_2a.more_layers(errors(0.0, 0.0)).holds

    def test_consistent(self) -> None:
        columns = ["layers", "scheme", "mean", "low", "high"]
        rows = [(4, "adaptive", -2.0, -3.0, -1.0), (6, "adaptive", -2.0, -3.0, -1.0)]
        assert figure_2a.consistent(pd.DataFrame(rows, columns=columns)).holds
        rows[1] = (6, "adaptive", -2.0, -5.0, 1.0)
        assert not figure_2a.consistent(pd.DataFrame(rows, columns=columns)).holds

    def steps(self, first: int, middle: int, last: int, dimension: float) -> pd.DataFrame:
        row = {"layers": 18, "first": first, "middle": middle, "last": last, "dimension": dimension}
        row |= {"last_step": 1.0, "longest_step": 2.0, "dimension_half": 3.0, "stable": 5.0}
        return pd.DataFrame([row, {**row, "middle": middle - 0.1}, row])

    def test_where_the_steps_are(self) -> None:
        found = figure_2b.answers(self.steps(9, 3, 6, 6.0))
        assert all(answer.holds for answer in found.values())
        found = figure_2b.answers(self.steps(9, 6, 3, 4.0))
        assert [name for name, answer in found.items() if answer.holds] == ["beginning"]

    def test_spread(self) -> None:
        rows = [(scheme, seed, value + 0.01 * seed) for seed in range(4) for scheme, value in
                (("adaptive", 0.1), ("equidistant", 0.4))]  # fmt: skip
        table = pd.DataFrame(rows, columns=["scheme", "seed", "distances"])
        assert figure_2c.better_spread(table, "distances").holds
        table["scheme"] = table["scheme"].replace({"adaptive": "equidistant", "equidistant": "adaptive"})
        assert not figure_2c.better_spread(table, "distances").holds


class TestFigure3:
    def test_a_power_of_the_depth_is_found(self) -> None:
        assert power(over_depths(column=0.7), "column").mean == pytest.approx(0.7)

    def test_what_grows_is_not_bounded(self) -> None:
        columns = dict.fromkeys(figure_3.COLUMNS.values(), -0.1)
        still = figure_3.answers(over_depths(**columns))
        assert all(answer.holds for answer in still.values())
        grows = figure_3.answers(over_depths(**{**columns, "length_per_root_n": 0.7}))
        assert [name for name, answer in grows.items() if not answer.holds] == ["bounded", "length"]


class TestInstances:
    def test_the_gradient_of_the_cost(self) -> None:
        a = drawn(0, 2, 8, 3).requires_grad_()
        cost, gradient = cost_and_gradient(a)
        (expected,) = torch.autograd.grad(cost.sum(), a)
        torch.testing.assert_close(gradient.detach(), expected)

    def test_a_curve_and_its_velocity(self) -> None:
        curve, step = SmoothCurve(1, 0.5), 1e-5
        for p in (0.2, 0.9):
            slope = (curve.at(p + step) - curve.at(p - step)) / (2 * step)
            torch.testing.assert_close(slope, curve.velocity(p), atol=1e-8, rtol=1e-8)
        for p in (0.0, 1.0):
            torch.testing.assert_close(SmoothCurve(1, 0.0).at(p), curve.at(p))


class TestStatements:
    def seen(self, kind: str, left: float) -> CheckedStatement:
        return CheckedStatement(kind, "seed 0", 2.0, at_least("Proposition 0", "left ≥ 1", left, 1.0))

    def test_one_that_fails_is_named(self) -> None:
        seen = [self.seen("drawn", 2.0), self.seen("trained", 2.0), self.seen("trained", 0.5)]
        assert "not for trained seed 0" in held(seen)
        assert not every(seen, "words").holds
        assert every(seen[:2], "words").holds
        assert statement_table(seen)["holds"].tolist() == [True, True, False]
        assert every([], "words").holds is None


class TestPropositions:
    def test_descent_leads_to_a_whole_number(self) -> None:
        found = proposition_2.descend(torch.stack([drawn(seed, 8, 2) for seed in (2, 3)]), 2000)
        assert found.costs[-1] == pytest.approx([2.0, 2.0], abs=1e-3)
        assert found.negative.max() < 0.01
        assert found.costs[0].min() > 2.1

    def test_minima(self) -> None:
        good = {"cost": 3.001, "negative": 0.01}
        assert proposition_2.minima(pd.DataFrame([good])).holds
        assert not proposition_2.minima(pd.DataFrame([good, {**good, "cost": 2.6}])).holds
        assert not proposition_2.minima(pd.DataFrame([good, {**good, "negative": 0.2}])).holds

    def test_what_vanishes(self) -> None:
        falling = over_depths({2.0: 0.3, 3.0: 0.2, 5.0: 0.1, 8.0: 0.05, 11.0: 0.01})
        assert proposition_5.non_negative(falling, "value").holds
        large = over_depths({2.0: 0.5, 3.0: 0.4, 5.0: 0.3, 8.0: 0.2, 11.0: 0.1})
        assert not proposition_5.non_negative(large, "value").holds
        rising = over_depths({2.0: 0.001, 3.0: 0.002, 5.0: 0.003, 8.0: 0.004, 11.0: 0.005})
        assert not proposition_5.non_negative(rising, "value").holds

    def factors(self, factor: float) -> list[CheckedStatement]:
        details = {"factor": factor, "largest_leak": 0.1}
        statement = Statement("Proposition 9", "", 1.0, 1.0, 0.0, True, "", details)
        return [CheckedStatement("solved", "seed 0", 2.0, statement)]

    def test_the_papers_factor(self) -> None:
        assert proposition_9.as_printed([1.0], self.factors(1.01)).holds
        assert not proposition_9.as_printed([2.0], self.factors(2.0)).holds


class TestTheorem4:
    def test_a_critical_network_for_which_the_printed_statement_fails(self) -> None:
        path = theorem.counterexample()
        assert criticality(path).max() < 1e-12
        assert bool((path.representations < 0).all())
        assert all(statement.holds for statement in theorem_4(path, gamma=1.0))
        assert not theorem.as_printed(path, 1.0).holds
        assert theorem.as_printed(solved(20), 1.0).holds
        assert not theorem.as_printed(solved(20), -1.0).holds

    def test_timescales(self) -> None:
        assert theorem.timescales(over_depths(slow=0.0, fast=1.0)).holds
        assert not theorem.timescales(over_depths(slow=1.0, fast=1.0)).holds
        assert not theorem.timescales(over_depths(slow=0.0, fast=0.5)).holds

    def test_close(self) -> None:
        assert theorem.close(over_depths(gap=-2.0)).holds
        assert not theorem.close(over_depths(gap=0.5)).holds


def test_footnote_1_needs_linear_networks() -> None:
    table = footnote_1.curve_table(range(1))
    linear, bent = table[table["sigma"] == "identity"], table[table["sigma"] == "relu"]
    assert linear["integral"].to_list() == pytest.approx(linear["ends"].to_list())
    assert not math.isclose(bent["integral"].min(), bent["integral"].max(), rel_tol=0.1)
