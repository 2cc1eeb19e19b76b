"""The items that join the papers: pure statistics, on layers whose answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from fathometer.gauges import affinity_score
from fathometer.leaky import Phase, Recipe, grid, preset, sweep
from papers.intervals import bounded_interval, intervals, mean_interval
from papers.joined import finding, path
from papers.joined.networks import gap_of_neurons, layers_of
from papers.joined.prediction import DIMENSIONS, jackknife, left_out, monotone, seed_means
from papers.verdict import answer

DEPTHS = (3.0, 5.0, 8.0, 11.0)


def made(best: str | None, seed: int = 0, noise: float = 0.4) -> pd.DataFrame:
    """Layers in which the gap is a function of one dimension alone (`best`), or of none of them."""
    rng = np.random.default_rng(seed)
    rows = []
    for rank in (2, 4):
        for depth in DEPTHS:
            for number in range(5):
                for point in range(12):
                    p = point / 12
                    bowl = np.exp(-depth * p / 2) + np.exp(-depth * (1 - p) / 2) + 0.3 / depth
                    row = {"rank": rank, "effective_depth": depth, "seed": number, "point": point, "p": p}
                    # all follow the bowl, each with noise of its own
                    row |= {name: rank * (1 + bowl * np.exp(noise * rng.normal())) for name in DIMENSIONS}
                    own = bowl * np.exp(noise * rng.normal())
                    row["gap"] = 0.2 * (own if best is None else row[best] / rank - 1)
                    rows.append(row)
    table = pd.DataFrame(rows)
    least = table.groupby(["rank", "effective_depth", "seed"])["cost_of_identity"].transform("min")
    table["extra"] = table["cost_of_identity"] - least
    table["negative"] = 1.5 * table["gap"]
    return table.assign(
        affinity=1 - table["gap"],
        inside=table["extra"] <= 0.5,
        speed=table["gap"],
    )


RIVALRIES = ("along", "held_out", "across", "beyond")


def decided(name: str, evidence: pd.DataFrame) -> bool | None:
    """Apply the rule of a claim to the numbers, whatever the power of the test."""
    claims = {**finding.CLAIMS, **path.PATH.claims}
    return answer(replace(claims[name], simulation=None), evidence, 0).holds


@pytest.mark.parametrize("name", RIVALRIES)
@pytest.mark.parametrize("best", ["cost_of_identity", "stable_rank", "stable_rank_op", None])
def test_only_a_predictor_that_decides_the_gap_wins(name: str, best: str | None) -> None:
    assert decided(name, made(best)) is (best == "cost_of_identity")


def test_being_better_than_one_stable_rank_is_not_enough() -> None:
    """The common one is the cost of identity under another name."""
    layers = made("cost_of_identity")
    layers["stable_rank_op"] = layers["cost_of_identity"]
    assert not any(decided(name, layers) for name in RIVALRIES)


def test_size_and_power_of_a_comparison() -> None:
    found = answer(finding.CLAIMS["along"], made("cost_of_identity", noise=0.02), 300)
    assert found.size is not None
    assert found.power is not None
    assert found.size < 0.05 < 0.8 < found.power


def test_the_score_is_compared_with_the_signs() -> None:
    layers = made("cost_of_identity", noise=0.1)
    assert decided("where", layers) is True
    assert decided("limits", layers) is True
    assert finding.limits(layers)["power"] == pytest.approx(1)
    layers["negative"] = np.random.default_rng(0).uniform(size=len(layers))
    assert decided("where", layers) is False
    assert decided("limits", layers) is False


def test_intervals_stay_within_the_possible_range() -> None:
    trends = [-1.0, -0.98, -1.0, -1.0, -0.99]
    assert mean_interval(trends).low < -1
    low, high = bounded_interval(trends, "correlation")[1:3]
    assert -1 <= low < high < -0.97
    assert bounded_interval([1.0, 1.0], "share") == (1.0, 1.0, 1.0, 2)
    assert intervals({"auc": [0.99, 1.0, 0.9]}, "share")["auc_high"] <= 1


@pytest.mark.parametrize(
    ("negative", "affinity", "holds"),
    [(0.01, 0.99, True), (0.01, 0.94, False), (0.2, 0.99, False), (0.2, 0.5, True), (0.05, 0.96, True)],
)
def test_layers_with_one_property_and_not_the_other_are_counted(
    negative: float, affinity: float, holds: bool
) -> None:
    assert decided("exactly", pd.DataFrame({"negative": [negative], "affinity": [affinity]})) is holds


def deep(inside: float, outside: float) -> pd.DataFrame:
    """Networks of five seeds with L̃ = 11; six layers inside the bottleneck, six outside."""
    rows = [
        {"rank": 2, "effective_depth": 11.0, "seed": seed, "extra": 0.1 if point < 6 else 9.0 + seed}
        | {"inside": point < 6, "affinity": inside if point < 6 else outside, "speed": point}
        | {"stable_rank": 2.0, "stable_rank_op": 2.0}
        for seed in range(5)
        for point in range(12)
    ]
    return pd.DataFrame(rows)


def test_the_theory_is_about_layers_inside_and_outside() -> None:
    assert decided("theory", deep(0.98, 0.8)) is True
    numbers = finding.theory(deep(0.98, 0.8))
    assert (numbers["extra"], numbers["extra_stable_rank"]) == (1, 0.5)
    assert decided("theory", deep(0.8, 0.98)) is False
    assert decided("theory", deep(0.98, 0.97)) is None  # nothing to tell apart


def test_a_monotone_curve_finds_a_law_either_way() -> None:
    x = np.linspace(1, 5, 200)
    for sign in (1, -1):
        assert np.abs(monotone(x, sign * x**3, np.array([2.0, 4.0])) - sign * np.array([8, 64])).max() < 0.05
    twice = monotone(np.array([1.0, 1.0, 2.0]), np.array([0.0, 2.0, 5.0]), np.array([1.0]))
    assert twice.tolist() == [1.0]


def test_held_out_errors_do_not_see_the_seed_they_are_measured_on() -> None:
    layers = made("cost_of_identity")
    odd = layers["seed"] == 0
    layers.loc[odd, "gap"] += 1  # no other seed has anything like it
    found = left_out(layers, ["cost_of_identity"]).groupby("seed")["cost_of_identity"].mean()
    assert found[0] > 0.9
    assert len(left_out(layers, DIMENSIONS)) == 40


def test_a_seed_counts_once() -> None:
    table = pd.DataFrame({"seed": [0, 0, 0, 1], "x": [1.0, 1.0, 1.0, 3.0]})
    expected = intervals(seed_means(table, "x"))
    assert expected["x"] == 2
    found = jackknife(table, lambda part: part.groupby("seed")[["x"]].mean().mean())
    assert found == pytest.approx(expected)  # for a mean: Student's t


def test_layers_of_a_network() -> None:
    tiny = replace(
        preset("quick").design, width=31, samples=40, test_samples=40, layers=6, effective_depth=4.0
    )
    run = sweep(grid(tiny, rank=[2]), Recipe((Phase("adam", 30, 3e-3),))).runs[0]
    table = layers_of(run)
    assert table["point"].to_list() == list(range(6))  # no ReLU acts on the last one
    a = run.path.representations[2]
    row = table.iloc[2]
    assert row["stable_rank_op"] == pytest.approx(float((a.norm() / torch.linalg.matrix_norm(a, 2)) ** 2))
    gamma = 1e-3 * torch.linalg.matrix_norm(a, 2) ** 2
    inverse = torch.linalg.inv(a.mT @ a + gamma * torch.eye(40, dtype=a.dtype))
    assert row["ridge_rank"] == pytest.approx(float(torch.trace(a @ inverse @ a.mT)))
    assert row["speed"] == pytest.approx(float(6 * (run.path.representations[3] - a).norm() / a.norm()))
    assert table["inside"].any()
    costs = row[
        ["cost_of_identity_0.1", "cost_of_identity_0.01", "cost_of_identity", "cost_of_identity_0.0001"]
    ]
    assert costs.is_monotonic_increasing  # a smaller ridge costs more


def test_of_one_neuron_the_gap_alone_is_the_gap() -> None:
    a = torch.randn(1, 1, 400, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    score = affinity_score(a[0].mT, a[0].mT.relu(), covariance="sample")
    assert gap_of_neurons(a).item() == pytest.approx(1 - float(score), abs=1e-9)
    assert gap_of_neurons(a.abs()).item() == pytest.approx(0, abs=1e-7)
    assert gap_of_neurons(-a.abs()).item() == 0  # always negative: a constant


def test_trends_with_depth() -> None:
    rows = [{"rank": 3, "effective_depth": depth, "seed": seed} for seed in (0, 1) for depth in DEPTHS]
    table = pd.DataFrame(rows).assign(best=2 * [0.9, 0.95, 0.98, 0.99], negative=2 * [0.3, 0.1, 0.05, 0.01])
    assert decided("depth", table) is True
    assert decided("negative", table) is True
    assert decided("depth", table.assign(best=2 * [0.9, 0.99, 0.95, 0.91])) is False


def test_inside_and_outside_the_bottleneck() -> None:
    good, bad = deep(0.99, 0.9), deep(0.96, 0.95)
    for layers, holds in ((good, True), (bad, False)):
        table = path.by_network(layers.assign(negative=0.1))
        assert decided("inside", table) is holds
        assert decided("outside", table) is holds
    alone = path.by_network(good[good["inside"]].assign(negative=0.1))
    assert decided("outside", alone) is None
