from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from fathometer import AtlasSettings, activation_atlas, affinity_score, polynomial_scores, range_scores
from fathometer.activations import PAPER_ACTIVATIONS, activation
from fathometer.errors import InputError

SMALL = AtlasSettings(means=5, stds=(2.0, 0.1), samples=80, features=6)


def test_relu_is_affine_away_from_its_kink_and_not_at_it() -> None:
    seen: list[tuple[int, int]] = []
    atlas = activation_atlas(["ReLU"], SMALL, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i, 11) for i in range(1, 12)]
    assert atlas.table[["mean", "std"]].value_counts().to_list() == [1] * 10
    assert sorted(atlas.table["mean"].unique()) == [-20, -10, 0, 10, 20]
    by_mean = atlas.medians("ReLU")
    assert by_mean[-20.0] == 1.0
    assert by_mean[20.0] == pytest.approx(1, abs=1e-9)
    assert by_mean[0.0] < 0.8
    summary = atlas.summary().loc["ReLU"]
    assert summary["at_mean"] == 0.0
    assert summary["min"] == atlas.table["score"].min()
    assert summary["baseline"] == pytest.approx(0.67, abs=0.05)
    dead = atlas.table[atlas.table["mean"] == -20]
    assert set(dead["coupling"]) == {"constant"}


def test_the_result_does_not_depend_on_which_others_are_measured() -> None:
    alone = activation_atlas(["Tanh"], SMALL)
    beside = activation_atlas(PAPER_ACTIVATIONS, SMALL)
    assert list(beside.baseline.index) == list(PAPER_ACTIVATIONS)
    part = beside.table[beside.table["activation"] == "Tanh"].reset_index(drop=True)
    pd.testing.assert_frame_equal(part, alone.table)
    assert beside.baseline["Tanh"] == pytest.approx(alone.baseline["Tanh"], abs=1e-12)


@pytest.mark.parametrize("name", ["relu", "RELU", "softplus", "Softmax", "PReLU"])
def test_activations_of_torch_are_found_in_any_case(name: str) -> None:
    assert activation(name)(torch.randn(3, 4).double()).shape == (3, 4)


def test_polynomials_are_those_of_the_paper() -> None:
    scores = polynomial_scores()
    np.testing.assert_allclose(scores["score"], [1, 0.711, 0.577, 0.399, 0.289, 0.205], atol=1e-3)
    x = np.linspace(-1, 1, 1000)[:, None]
    assert affinity_score(x, x**2, covariance="sample").coupling == "assignment"


def test_a_plain_number_as_ridge_is_relative() -> None:
    settings = AtlasSettings(means=2, stds=(1.0,), samples=20, features=2, ridge=1e-6)  # type: ignore[arg-type]
    records = activation_atlas(["ReLU"], settings).records()
    assert set(records["ridge"]) == {1e-6}
    assert records["ridge_relative"].all()


def test_the_range_decides_how_affine_relu_is() -> None:
    table = range_scores(["relu", "ReLU"], ranges=[(-1, 1), (-8, 8), (0, 1), (-0.1, 1)])
    assert set(table["activation"]) == {"ReLU"}
    scores = table["score"]
    assert scores[0] == pytest.approx(scores[1], abs=1e-3)  # scale does not matter, balance does
    assert scores[2] == pytest.approx(1, abs=1e-9)
    assert scores[0] < scores[3] < 1


WRONG_DEGREES: list[Any] = [[0], [2.5], [], 5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(activation, "Rellu"), "did you mean ReLU"),
        (partial(activation, "GLU"), "expected an activation .* got torch.nn.GLU: its output has another"),
        (partial(activation, "MultiheadAttention"), "expected an activation that needs no arguments"),
        *((partial(polynomial_scores, wrong), "degrees: expected") for wrong in WRONG_DEGREES),
        (partial(range_scores, ["ReLU"], ranges=[(1, 0)]), "low < high, got 1:0"),
        (partial(range_scores, ["ReLU"], ranges=[]), "ranges"),
        (partial(range_scores, []), "one or more names of activations"),
        (partial(AtlasSettings, interval=(1.0, 1.0)), "low < high"),
        (partial(AtlasSettings, means=0), "means: expected a whole number from 1"),
        (partial(AtlasSettings, stds=(1.0, -1.0)), "one or more finite numbers above 0"),
    ],
)
def test_bad_values_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
