"""Figures 2, 6, 7 and Section 3: the tests of the claims, on numbers for which the answer is known."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from fathometer import InputError
from fathometer.activations import PAPER_ACTIVATIONS, AtlasSettings, activation_atlas
from papers.affinity import figure_2, figure_6, figure_7, theorems
from papers.item import Item, RunContext


def scores(changes: dict[str, float] | None = None, everywhere: float = 0.95) -> pd.DataFrame:
    """Two seeds, 20 means, 3 stds: every score the same, but at the four means around 0 for some."""
    means = np.linspace(-20, 20, 20)
    rows = [
        {"seed": seed, "activation": name, "mean": mean, "std": std}
        | {"score": (changes or {}).get(name, everywhere) if abs(mean) < 4 else everywhere}
        for seed in (0, 1)
        for name in PAPER_ACTIVATIONS
        for mean in means
        for std in (2.0, 0.5, 0.01)
    ]
    table = pd.DataFrame(rows)
    return table.assign(either=table["score"])


def left(table: pd.DataFrame, score: float, *names: str) -> pd.DataFrame:
    """Change the scores of some activations at all means below 4."""
    chosen = table["activation"].isin(names) & (table["mean"] < 4)
    changed = table["score"].where(~chosen, score)
    return table.assign(score=changed, either=changed)


def test_widths_are_ranges_of_means() -> None:
    found = figure_6.widths(scores({"ReLU": 0.5}))
    assert found["ReLU"].to_list() == pytest.approx([4 * 40 / 19] * 2)
    assert found["GELU"].to_list() == [0, 0]


def test_a_falling_line_counts_as_straight_when_turned() -> None:
    low = left(scores({"ReLU": 0.5}), 0.1, *figure_6.MODERN).drop(columns="either")
    turned = low.loc[low["score"] == 0.1, figure_6.KEYS].assign(turned=0.99)
    both = figure_6.either_way(low, turned)
    assert figure_6.FIGURE_6.claims["modern"].holds(figure_6.modern(both, "score"))
    assert not figure_6.FIGURE_6.claims["bent"].holds(figure_6.modern(both, "either"))


def test_a_falling_line_scores_high_when_turned() -> None:
    settings = AtlasSettings(interval=(-20.0, -10.0), means=2, stds=(0.01,), samples=200, features=20)
    turned = figure_6.turned_scores(settings).set_index(["activation", "mean"])["turned"]
    plain = activation_atlas(["SiLU"], settings).medians("SiLU")
    assert plain[-20.0] < 0.5 < 0.99 < turned["SiLU", -20.0]
    assert turned["Hardswish", -20.0] == 1  # constant


def sites(flatten: float, shift: float = 0.0) -> figure_7.Evidence:
    """Six sites of three seeds; flattened scores are that much higher, and in another order if asked for."""
    mean = np.tile(np.linspace(0.5, 0.75, 6), 3)
    other = np.tile(np.linspace(0.5, 0.75, 6)[::-1], 3) if shift else mean
    table = pd.DataFrame({"seed": np.repeat([0, 1, 2], 6), "number": np.tile(range(1, 7), 3), "mean": mean})
    table = table.assign(**{"sum": mean, "flatten": other + flatten, "mean, pooled first": mean})
    return figure_7.Evidence(table, pd.DataFrame())


def widths(shrunk: float, sample: float, last: float = 0.0) -> figure_7.Evidence:
    """Scores that rise by so much from d = n/8 to 4n, and once more at 2n²."""
    rows = []
    for seed in (0, 1):
        for ratio in (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 128.0):
            rise = min(np.log2(ratio / 0.125) / 5, 1)
            for name, slope in (("sample", sample), ("ledoit-wolf", shrunk)):
                score = 0.6 + slope * rise + last * (ratio > 4)
                row = {"samples": 64, "features": 64 * ratio, "ratio": ratio, "seed": seed}
                rows.append(row | {"covariance": name, "score": score})
    return figure_7.Evidence(pd.DataFrame(), pd.DataFrame(rows))


def pairs(**changes: float) -> theorems.Evidence:
    """Pairs of samples of which everything is true, but for some columns, in both rows."""
    row = {"w2": 1.0, "paired": 1.0, "split": 1.0, "normal": 1.0, "gap_bound": 0.5, "map_error": 0.0}
    row |= {"residual": 0.2, "residual_bound": 1.0} | changes
    names = pd.DataFrame({"map": ["positive definite", "|x|"]})
    return theorems.Evidence(names.assign(**row), [changes.get("independent", 0.0)])


RELUS = {"ReLU": 0.5, "ReLU6": 0.4, "LeakyReLU": 0.6}
BENDS = {"ReLU": 0.5, "GELU": 0.5, "Sigmoid": 0.5}
DEGREES = {f"k = {k}": 1 / k for k in range(1, 42)}


def functions(relu: float) -> pd.DataFrame:
    table = pd.DataFrame({"ReLU": relu, "Tanh": 0.8, "Sigmoid": 0.9}, [0, 1, 2, 3])
    return table.set_axis(pd.MultiIndex.from_tuples([figure_2.COMMON, *figure_2.OTHERS]))


def ranges(last: float, law: float) -> figure_2.Ranges:
    return figure_2.Ranges({"[0, 2]": 1.0, "[-1, 2]": last}, {"uniform": 0.7, "arcsine": law})


CASES: list[tuple[Item, str, Any, bool]] = [
    (figure_2.FIGURE_2A, "range", ranges(0.8, 0.7), True),
    (figure_2.FIGURE_2A, "range", ranges(1.0, 0.7), False),
    (figure_2.FIGURE_2A, "only", ranges(0.8, 0.7), True),
    (figure_2.FIGURE_2A, "only", ranges(0.8, 0.72), False),
    (figure_2.FIGURE_2B, "order", functions(0.7), True),
    (figure_2.FIGURE_2B, "order", functions(0.85), False),
    (figure_2.FIGURE_2B, "everywhere", functions(0.7), True),
    (figure_2.FIGURE_2B, "everywhere", functions(0.85), False),
    (figure_2.FIGURE_2C, "degree", DEGREES, True),
    (figure_2.FIGURE_2C, "degree", DEGREES | {"k = 5": 0.4}, False),
    (figure_2.FIGURE_2C, "every", DEGREES, True),
    (figure_2.FIGURE_2C, "every", DEGREES | {"k = 4": 0.1}, False),
    (figure_6.FIGURE_6, "zero", scores({"GELU": 0.05, "ReLU": 0.09, "Sigmoid": 0.1}), True),
    (figure_6.FIGURE_6, "zero", scores({"GELU": 0.05, "ReLU": 0.2, "Sigmoid": 0.3}), False),
    (figure_6.FIGURE_6, "zero", scores({"GELU": 0.05, "ReLU": 0.09, "Sigmoid": 0.02}), False),
    (figure_6.FIGURE_6, "wide", left(scores(BENDS), 0.5, "GELU", "Sigmoid"), True),
    (figure_6.FIGURE_6, "wide", scores(BENDS), False),
    (figure_6.FIGURE_6, "modern", left(scores({"ReLU": 0.5}), 0.1, *figure_6.MODERN), True),
    (figure_6.FIGURE_6, "modern", left(scores({"ReLU": 0.5}), 0.89, *figure_6.MODERN), False),  # no stronger
    (figure_6.FIGURE_6, "bent", left(scores({"ReLU": 0.5}), 0.1, *figure_6.MODERN), True),
    (figure_6.FIGURE_6, "bent", left(scores({"ReLU": 0.5}), 0.89, *figure_6.MODERN), False),
    (figure_6.FIGURE_6, "tanh", scores({"Tanh": 0.1, "Sigmoid": 0.21}), True),
    (figure_6.FIGURE_6, "tanh", scores({"Tanh": 0.1, "Sigmoid": 0.19}), False),
    (figure_6.FIGURE_6, "alike", scores(RELUS), True),
    (figure_6.FIGURE_6, "alike", left(scores(RELUS), 0.4, "ReLU6"), False),
    (figure_6.FIGURE_6, "leaky", scores(RELUS), True),
    (figure_6.FIGURE_6, "leaky", scores(RELUS | {"ReLU6": 0.7}), False),
    (figure_7.FIGURE_7, "sum", sites(0.0), True),
    (figure_7.FIGURE_7, "sum", figure_7.Evidence(sites(0.0).sites.assign(sum=0.5), pd.DataFrame()), False),
    (figure_7.FIGURE_7, "flatten", sites(0.02), True),
    (figure_7.FIGURE_7, "flatten", sites(0.1), False),
    (figure_7.FIGURE_7, "order", sites(0.1), True),
    (figure_7.FIGURE_7, "order", sites(0.0, shift=1.0), False),
    (figure_7.FIGURE_7, "sample", widths(0.0, 0.35), True),
    (figure_7.FIGURE_7, "sample", widths(0.0, 0.1), False),
    (figure_7.FIGURE_7, "shrunk", widths(0.04, 0.0, last=0.2), True),
    (figure_7.FIGURE_7, "shrunk", widths(0.06, 0.0), False),
    (figure_7.FIGURE_7, "regimes", widths(0.04, 0.0), True),
    (figure_7.FIGURE_7, "regimes", widths(0.0, 0.0, last=0.2), False),
    *((theorems.THEOREMS, name, pairs(), True) for name in theorems.THEOREMS.claims if name != "positive"),
    (theorems.THEOREMS, "optimal", pairs(paired=1.1), False),
    (theorems.THEOREMS, "means", pairs(split=0.9), False),
    (theorems.THEOREMS, "normal", pairs(normal=0.9), False),
    (theorems.THEOREMS, "normal", pairs(map_error=0.1), False),
    (theorems.THEOREMS, "gelbrich", pairs(normal=1.1), False),
    (theorems.THEOREMS, "gap", pairs(normal=0.4), False),
    (theorems.THEOREMS, "residual", pairs(residual=1.1), False),
    (theorems.THEOREMS, "independent", pairs(independent=0.5), False),
    (theorems.THEOREMS, "positive", None, False),
]


@pytest.mark.parametrize(("item", "name", "evidence", "holds"), CASES)
def test_a_claim_holds_where_it_should_and_nowhere_else(
    item: Item, name: str, evidence: Any, holds: bool
) -> None:
    claim = item.claims[name]
    numbers = claim.measure(evidence)
    assert bool(claim.holds(numbers)) is holds, claim.sentence(numbers)


def test_distances_by_assignment() -> None:
    x = torch.tensor([[0.0], [1.0], [5.0]], dtype=torch.float64)
    assert theorems.wasserstein(x, x.flip(0) + 2) == pytest.approx(2)
    found = theorems.measured(x, torch.neg)
    assert found["paired"] > found["w2"]  # a falling map is not optimal


def test_the_published_network_must_be_there(tmp_path: Path) -> None:
    pixels = np.zeros((500, 32, 32, 3), np.uint8)
    np.savez(tmp_path / "cifar10_test.npz", x=pixels, y=np.zeros(500, np.uint8))
    context = RunContext("paper", "cpu", tmp_path, tmp_path, {"cifar10": tmp_path, "resnets": tmp_path})
    with pytest.raises(InputError, match="expected a file resnet20"):
        figure_7.run(context)
