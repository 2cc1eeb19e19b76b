from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
import torch

from fathometer.errors import InputError
from fathometer.leaky import LeakyResNet, Phase, Recipe, Teacher, grid
from tests.leaky.networks import SMALL


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 8.5}, "width: expected a whole number from 1, got 8.5"),
        ({"effective_depth": -1.0}, "effective_depth: expected a finite number from 0, got -1.0"),
        ({"decay": 0.0}, "decay: expected a finite number > 0, got 0"),
        ({"irregularity": float("nan")}, r"irregularity: expected a number in \[0, 1\), got nan"),
        ({"maps": "free"}, "maps: expected one of learned, fixed, identity, got 'free'"),
        ({"layers": 2}, "equidistant steps need L ≥ L̃ = 3, got L = 2"),
        ({"width": 4, "maps": "identity"}, "identity maps need at least 5"),
        ({"scheme": "random"}, "scheme: expected one of equidistant, irregular, adaptive, given"),
        ({"sigma": "wave"}, "sigma: expected identity"),
        ({"scheme": "given"}, "expected steps if the scheme is `given`"),
        ({"steps": (0.5, 0.5)}, "and only then"),
        ({"scheme": "given", "steps": (0.5, 0.5)}, "expected 6, one for each layer, got 2"),
        ({"scheme": "given", "steps": "abc"}, "steps: expected positive numbers, one for each layer"),
        ({"samples": 2, "test_samples": 0}, r"samples: expected more than 2.*got 2 \+ 0"),
        ({"teacher": "fcnn"}, r"teacher: expected a Teacher, or None.*got 'fcnn'"),
    ],
)
def test_invalid_designs_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(SMALL, **change)


def test_sequences_are_kept_as_tuples() -> None:
    for steps in ([0.25, 0.75], torch.tensor([0.25, 0.75])):
        design = replace(SMALL, effective_depth=1.0, layers=2, scheme="given", steps=steps)  # type: ignore[arg-type]
        assert design.steps == (0.25, 0.75)
        assert isinstance(hash(design), int)
    assert Recipe([Phase()]) == Recipe((Phase(),))  # type: ignore[arg-type]


def test_numpy_numbers_are_taken_and_can_be_written() -> None:
    changes = {name: np.float32(0.5) for name in ("effective_depth", "decay", "irregularity")}
    design = replace(SMALL, **changes)  # type: ignore[arg-type]
    assert design == replace(SMALL, effective_depth=0.5, decay=0.5, irregularity=0.5)
    recipe = Recipe((Phase(learning_rate=np.float32(0.5)),), np.float32(0.5))  # type: ignore[arg-type]
    json.dumps([asdict(design), asdict(recipe)])
    designs = grid(SMALL, effective_depth=np.arange(1, 4), seeds=np.int64(2))  # type: ignore[arg-type]
    assert designs == grid(SMALL, effective_depth=[1, 2, 3], seeds=2)
    net = LeakyResNet(3, 2, width=4, effective_depth=np.float32(2), steps=np.int64(5))  # type: ignore[arg-type]
    twin = LeakyResNet(3, 2, width=4, effective_depth=2.0, steps=5)
    assert net.effective_depth == 2.0
    assert all(torch.equal(value, twin.state_dict()[name]) for name, value in net.state_dict().items())


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (Phase, {"epochs": 10.5}, "epochs: expected a whole number from 1, got 10.5"),
        (Phase, {"method": "newton"}, "method"),
        (Phase, {"learning_rate": 0.0}, "learning_rate: expected a finite number > 0, got 0"),
        (Recipe, {"phases": ["adam"]}, r"phases: expected at least one Phase, got \['adam'\]"),
        (Recipe, {"tolerance": -1.0}, "tolerance: expected a finite number from 0, got -1.0"),
        (Recipe, {"precision": "half"}, "precision: expected one of float32, float64, got 'half'"),
    ],
)
def test_invalid_phases_and_recipes_are_refused(make: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(**arguments)


def test_a_rank_is_for_teachers_of_one_inner_dimension() -> None:
    deep = replace(SMALL, teacher=Teacher((5, 3, 2, 4)))
    with pytest.raises(InputError, match=r"one inner dimension, got \(5, 3, 2, 4\); give teacher="):
        grid(deep, rank=[1, 2])
    teachers = [Teacher((5, 3, rank, 4)) for rank in (1, 2)]
    assert [design.teacher for design in grid(SMALL, teacher=teachers)] == teachers
    found = grid(SMALL, rank=[1, 2])
    assert [design.teacher and design.teacher.dimensions for design in found] == [(5, 1, 4), (5, 2, 4)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": 0}, "seeds: expected a whole number from 1, got 0"),
        ({"width": 8}, r"width: expected several values, as \[8\], got 8"),
        ({"scheme": "adaptive"}, r"scheme: expected several values, as \['adaptive'\]"),
        ({"depth": [1.0]}, "got depth"),
    ],
)
def test_invalid_grids_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        grid(SMALL, **arguments)
