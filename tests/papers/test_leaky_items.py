"""What decides the claims on Leaky ResNets: inputs for which each must hold, and for which it must not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest
import torch

from fathometer.leaky import criticality
from fathometer.leaky.theory import Statement, theorem_4
from fathometer.leaky.theory.statement import at_least
from papers.item import Answer, RunContext
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
from papers.leaky.statements import CheckedStatement, describe_holding, every, statement_table
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


def failing(answers: Mapping[str, Answer]) -> list[str]:
    return [name for name, answer in answers.items() if not answer.holds]


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


def approach(side: Literal["below", "above"], start: float, *values: float) -> Answer:
    table = over_depths(dict(zip(DEPTHS, values, strict=True)))
    return figure_1a.approach(table, "value", side, start)


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


def advantage(scheme: str) -> Answer:
    table = errors(0.01, 0.0)
    base = table[table["scheme"] == "equidistant"].drop(columns="scheme")
    pairs = table[table["scheme"] != "equidistant"].merge(base, on=["layers", "seed"], suffixes=("", "_base"))
    pairs = pairs.assign(difference=pairs["test_error"] - pairs["test_error_base"])
    return figure_2a.advantage(pairs, scheme, 0.4)


def consistent(high: float) -> Answer:
    rows = [(4, "adaptive", -2.0, -3.0, -1.0), (6, "adaptive", -2.0, -3.0, high)]
    return figure_2a.consistent(pd.DataFrame(rows, columns=["layers", "scheme", "mean", "low", "high"]))


def better_spread(adaptive: float, equidistant: float) -> Answer:
    spreads = {"adaptive": adaptive, "equidistant": equidistant}
    rows = [(name, seed, value + 0.01 * seed) for seed in range(4) for name, value in spreads.items()]
    return figure_2c.better_spread(pd.DataFrame(rows, columns=["scheme", "seed", "distances"]), "distances")


def minima(*changes: dict[str, float]) -> Answer:
    return proposition_2.minima(pd.DataFrame([{"cost": 3.001, "negative": 0.01, **each} for each in changes]))


def vanishes(*values: float) -> Answer:
    return proposition_5.non_negative(over_depths(dict(zip(DEPTHS, values, strict=True))), "value")


def printed_factor(factor: float) -> Answer:
    details = {"factor": factor, "largest_leak": 0.1}
    statement = Statement("Proposition 9", "", 1.0, 1.0, 0.0, True, "", details)
    return proposition_9.as_printed([factor], [CheckedStatement("solved", "seed 0", 2.0, statement)])


@pytest.mark.parametrize(
    ("decide", "holds"),
    [
        (lambda: approach("above", 3.0, 1.0, 20.0, 9.0, 4.0, 3.1), True),
        (lambda: approach("above", 0.0, 1.0, 20.0, 9.0, 4.0, 3.1), False),
        (lambda: approach("below", 3.0, 9.0, 1.0, 2.5, 2.0, 2.9), False),
        (lambda: approach("below", 3.0, 9.0, 0.5, 1.0, 2.0, 2.5), False),
        (lambda: approach("below", 3.0, 9.0, 1.0, 2.0, 3.2, 2.9), False),
        (lambda: figure_1c.conserved([1e-7], [[1.0, 0.5, 0.25]]), True),
        (lambda: figure_1c.conserved([1e-7], [[1.0, 0.5, 0.4]]), False),
        (lambda: figure_1c.conserved([1e-3], [[1.0, 0.5, 0.25]]), False),
        (lambda: advantage("adaptive"), True),
        (lambda: advantage("irregular"), False),
        (lambda: figure_2a.more_layers(errors(0.0, 0.002)), True),
        (lambda: figure_2a.more_layers(errors(0.0, 0.0)), False),
        (lambda: consistent(-1.0), True),
        (lambda: consistent(1.0), False),
        (lambda: better_spread(0.1, 0.4), True),
        (lambda: better_spread(0.4, 0.1), False),
        (lambda: minima({}), True),
        (lambda: minima({}, {"cost": 2.6}), False),
        (lambda: minima({}, {"negative": 0.2}), False),
        (lambda: vanishes(0.3, 0.2, 0.1, 0.05, 0.01), True),
        (lambda: vanishes(0.5, 0.4, 0.3, 0.2, 0.1), False),
        (lambda: vanishes(0.001, 0.002, 0.003, 0.004, 0.005), False),
        (lambda: printed_factor(1.01), True),
        (lambda: printed_factor(2.0), False),
        (lambda: theorem.timescales(over_depths(slow=0.0, fast=1.0)), True),
        (lambda: theorem.timescales(over_depths(slow=1.0, fast=1.0)), False),
        (lambda: theorem.timescales(over_depths(slow=0.0, fast=0.5)), False),
        (lambda: theorem.close(over_depths(gap=-2.0)), True),
        (lambda: theorem.close(over_depths(gap=0.5)), False),
        (lambda: theorem.as_printed(solved(20), 1.0), True),
        (lambda: theorem.as_printed(solved(20), -1.0), False),
        (lambda: theorem.as_printed(theorem.counterexample(), 1.0), False),
    ],
)
def test_a_claim_is_decided_by_its_numbers(decide: Callable[[], Answer], holds: bool) -> None:
    assert decide().holds is holds


SPECTRUM = {"rank": 3, "weights_gap": 50.0, "weights_largest": True, "gap": 20.0, "largest": True}
SPECTRUM |= {"share": 0.8, "dimension_first": 6.0, "dimension_least": 3.0, "dimension_last": 5.0}
ENERGIES = dict.fromkeys(["kinetic_first", "kinetic_last", "extra_first", "extra_last"], 100.0)
ENERGIES |= {"spread": 0.01, "spread_stable": 0.02, "alike": 0.99, "slope": 1.0}


@pytest.mark.parametrize(
    ("answers", "row", "change", "claim"),
    [
        (figure_1b.answers, SPECTRUM, {"rank": 4}, "weights"),
        (figure_1b.answers, SPECTRUM, {"weights_gap": 2.0}, "weights"),
        (figure_1b.answers, SPECTRUM, {"largest": False}, "representations"),
        (figure_1b.answers, SPECTRUM, {"share": 0.5}, "most"),
        (figure_1b.answers, SPECTRUM, {"dimension_last": 3.5}, "ends"),
        (figure_1c.answers, ENERGIES, {"spread_stable": 0.2}, "varies"),
        (figure_1c.answers, ENERGIES, {"slope": 0.5}, "proportional"),
        (figure_1c.answers, ENERGIES, {"extra_last": 2.0}, "ends"),
    ],
)
def test_one_seed_that_differs_fails_one_claim(
    answers: Callable[[pd.DataFrame, float], Mapping[str, Answer]],
    row: dict[str, float],
    change: dict[str, float],
    claim: str,
) -> None:
    assert failing(answers(pd.DataFrame([row, row]), 7.0)) == []
    assert failing(answers(pd.DataFrame([row, row | change]), 7.0)) == [claim]


def test_where_the_steps_are() -> None:
    row = {"layers": 18, "first": 9, "last": 6, "last_step": 1.0, "longest_step": 2.0}
    row |= {"middle": 3, "dimension": 6.0, "dimension_half": 3.0, "stable": 5.0}
    good = figure_2b.answers(pd.DataFrame([row, {**row, "middle": 2.9}, row]))
    assert failing(good) == []
    row |= {"middle": 6, "last": 3, "dimension": 4.0}
    found = figure_2b.answers(pd.DataFrame([row, {**row, "middle": 5.9}, row]))
    assert failing(found) == [name for name in good if name != "beginning"]


def test_what_grows_with_the_depth_is_not_bounded() -> None:
    assert power(over_depths(column=0.7), "column").mean == pytest.approx(0.7)
    columns = dict.fromkeys(figure_3.COLUMNS.values(), -0.1)
    assert failing(figure_3.answers(over_depths(**columns))) == []
    grows = figure_3.answers(over_depths(**{**columns, "length_per_root_n": 0.7}))
    assert failing(grows) == ["bounded", "length"]


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


def test_a_statement_that_fails_is_named() -> None:
    cases = [("drawn", 2.0), ("trained", 2.0), ("trained", 0.5)]
    checked = [
        CheckedStatement(kind, "seed 0", 2.0, at_least("Proposition 0", "left ≥ 1", left, 1.0))
        for kind, left in cases
    ]
    assert "not for trained seed 0" in describe_holding(checked)
    assert not every(checked, "words").holds
    assert every(checked[:2], "words").holds
    assert statement_table(checked)["holds"].tolist() == [True, True, False]
    assert every([], "words").holds is None


def test_descent_leads_to_a_whole_number() -> None:
    found = proposition_2.descend(torch.stack([drawn(seed, 8, 2) for seed in (2, 3)]), 2000)
    assert found.costs[-1] == pytest.approx([2.0, 2.0], abs=1e-3)
    assert found.negative.max() < 0.01
    assert found.costs[0].min() > 2.1


def test_the_counterexample_to_the_printed_theorem_4_is_critical() -> None:
    path = theorem.counterexample()
    assert criticality(path).max() < 1e-12
    assert bool((path.representations < 0).all())
    assert all(statement.holds for statement in theorem_4(path, gamma=1.0))


def test_footnote_1_needs_linear_networks() -> None:
    table = footnote_1.curve_table(range(1))
    linear, nonlinear = table[table["sigma"] == "identity"], table[table["sigma"] == "relu"]
    assert linear["integral"].to_list() == pytest.approx(linear["ends"].to_list())
    assert not math.isclose(nonlinear["integral"].min(), nonlinear["integral"].max(), rel_tol=0.1)
