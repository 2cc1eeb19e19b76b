"""Figures 6 and 7: the tests of the claims, on scores for which the answer is known."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fathometer import InputError
from fathometer.activations import PAPER_ACTIVATIONS, AtlasSettings, activation_atlas
from papers.affinity import figure_6, figure_7
from papers.item import Answer, RunContext


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
    return pd.DataFrame(rows)


def test_close_to_zero() -> None:
    assert figure_6.answer_zero(scores({"GELU": 0.05, "ReLU": 0.09, "Sigmoid": 0.1})).holds is True
    assert figure_6.answer_zero(scores({"GELU": 0.05, "ReLU": 0.2, "Sigmoid": 0.3})).holds is False
    assert figure_6.answer_zero(scores({"GELU": 0.05, "ReLU": 0.09, "Sigmoid": 0.02})).holds is False


def test_widths_are_ranges_of_means() -> None:
    found = figure_6.widths(scores({"ReLU": 0.5}), 0.9)
    assert found["ReLU"].to_list() == pytest.approx([4 * 40 / 19] * 2)
    assert found["GELU"].to_list() == [0, 0]
    table = figure_6.width_table(scores({"ReLU": 0.85}))
    relu = table.set_index("activation").loc["ReLU"]
    assert relu["below_0.8"] == 0
    assert relu["below_0.9"] > 0


def test_wide_is_twice_the_width_of_relu() -> None:
    narrow = scores({"ReLU": 0.5, "GELU": 0.5, "Sigmoid": 0.5})
    assert figure_6.answer_wide(narrow).holds is False
    wide = narrow["activation"].isin(["GELU", "Sigmoid"]) & (narrow["mean"] < 4)
    assert figure_6.answer_wide(narrow.assign(score=narrow["score"].where(~wide, 0.5))).holds is True


def test_modern_is_lower_and_wider() -> None:
    table = scores({"ReLU": 0.5})
    left = table["activation"].isin(["SiLU", "Hardswish"]) & (table["mean"] < 4)
    low = table.assign(score=table["score"].where(~left, 0.1))
    assert figure_6.answer_modern(low).holds is True
    shallow = table.assign(score=table["score"].where(~left, 0.89))  # as wide, but no stronger
    assert figure_6.answer_modern(shallow).holds is False
    mirrored = low[left][["seed", "activation", "mean", "std"]].assign(score=0.99)
    assert figure_6.answer_modern(figure_6.better_way(low, mirrored)).holds is False


def test_much_lower_is_half() -> None:
    assert figure_6.answer_tanh(scores({"Tanh": 0.1, "Sigmoid": 0.21})).holds is True
    assert figure_6.answer_tanh(scores({"Tanh": 0.1, "Sigmoid": 0.19})).holds is False


def test_variants_of_relu() -> None:
    alike = scores({"ReLU": 0.5, "ReLU6": 0.4, "LeakyReLU": 0.6})
    assert figure_6.answer_alike(alike).holds is True
    assert figure_6.answer_leaky(alike).holds is True
    other = alike["activation"].eq("ReLU6") & alike["mean"].between(4, 12)  # a second bend
    nonlinear = alike.assign(score=alike["score"].where(~other, 0.4))
    assert figure_6.answer_alike(nonlinear).holds is False
    assert figure_6.answer_leaky(scores({"ReLU": 0.5, "ReLU6": 0.7, "LeakyReLU": 0.6})).holds is False


def test_a_falling_line_scores_high_when_turned() -> None:
    settings = AtlasSettings(interval=(-20.0, -10.0), means=2, stds=(0.01,), samples=200, features=20)
    turned = figure_6.turned_scores(settings).set_index(["activation", "mean"])["score"]
    plain = activation_atlas(["SiLU"], settings).medians("SiLU")
    assert plain[-20.0] < 0.5 < 0.99 < turned["SiLU", -20.0]
    assert turned["Hardswish", -20.0] == 1  # constant


def sites(flatten: float, shift: float = 0.0) -> pd.DataFrame:
    """Six sites of three seeds; flattened scores are that much higher, and in another order if asked for."""
    mean = np.tile(np.linspace(0.5, 0.75, 6), 3)
    other = np.tile(np.linspace(0.5, 0.75, 6)[::-1], 3) if shift else mean
    table = pd.DataFrame({"seed": np.repeat([0, 1, 2], 6), "number": np.tile(range(1, 7), 3), "mean": mean})
    return table.assign(**{"sum": mean, "flatten": other + flatten, "mean, pooled first": mean})


def widths(shrunk: float, sample: float, last: float = 0.0) -> pd.DataFrame:
    """Scores that rise by so much from d = n/8 to 4n, and once more at 2n²."""
    rows = []
    for seed in (0, 1):
        for ratio in (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 128.0):
            rise = min(np.log2(ratio / 0.125) / 5, 1)
            for name, slope in (("sample", sample), ("ledoit-wolf", shrunk)):
                score = 0.6 + slope * rise + last * (ratio > 4)
                row = {"samples": 64, "features": 64 * ratio, "ratio": ratio, "seed": seed}
                rows.append(row | {"covariance": name, "score": score})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("found", "holds"),
    [
        (figure_7.answer_sum(sites(0.0)), True),
        (figure_7.answer_sum(sites(0.0).assign(sum=0.5)), False),
        (figure_7.answer_flatten(sites(0.02)), True),
        (figure_7.answer_flatten(sites(0.1)), False),
        (figure_7.answer_order(sites(0.1)), True),
        (figure_7.answer_order(sites(0.0, shift=1.0)), False),
        (figure_7.answer_sample(widths(0.0, 0.35)), True),
        (figure_7.answer_sample(widths(0.0, 0.1)), False),
        (figure_7.answer_constant(widths(0.04, 0.0), 4), True),
        (figure_7.answer_constant(widths(0.06, 0.0), 4), False),
        (figure_7.answer_constant(widths(0.0, 0.0, last=0.2), 4), True),
        (figure_7.answer_constant(widths(0.0, 0.0, last=0.2), None), False),
    ],
)
def test_reductions_and_covariances(found: Answer, holds: bool) -> None:
    assert found.holds is holds, found.measured


def test_the_published_network_must_be_there(tmp_path: Path) -> None:
    pixels = np.zeros((500, 32, 32, 3), np.uint8)
    np.savez(tmp_path / "cifar10_test.npz", x=pixels, y=np.zeros(500, np.uint8))
    context = RunContext("paper", "cpu", tmp_path, tmp_path, {"cifar10": tmp_path, "resnets": tmp_path})
    with pytest.raises(InputError, match="expected a file resnet20"):
        figure_7.run(context)
