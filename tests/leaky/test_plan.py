from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from fathometer.errors import InputError
from fathometer.leaky import Design, Phase, Recipe, Teacher, grid
from tests.leaky.networks import SMALL

NAN = float("nan")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 8.5}, "width: expected a whole number from 1, got 8.5"),
        ({"layers": 6.0}, "layers: expected a whole number from 1, got 6.0"),
        ({"effective_depth": -1.0}, "effective_depth: expected a finite number from 0, got -1.0"),
        ({"samples": 1}, "samples: expected a whole number from 2, got 1"),
        ({"test_samples": -1}, "test_samples: expected a whole number from 0, got -1"),
        ({"seed": 2**70}, "seed: expected a whole number from 0"),
        ({"decay": "small"}, "decay: expected a finite number > 0, got 'small'"),
        ({"decay": 0.0}, "number > 0, got 0"),
        ({"irregularity": NAN}, r"a in \[0, 1\), got nan"),
        ({"maps": "free"}, "maps: expected one of learned, fixed, identity, got 'free'"),
        ({"layers": 2}, "equidistant steps need L ≥ L̃ = 3, got L = 2"),
        ({"width": 4, "maps": "identity"}, "identity maps need at least 5"),
        ({"scheme": "random"}, "scheme: expected one of equidistant, irregular, adaptive, given"),
        ({"sigma": "gelu"}, "sigma: expected"),
        ({"scheme": "given"}, "expected steps if the scheme is `given`"),
        ({"steps": (0.5, 0.5)}, "and only then"),
        ({"scheme": "given", "steps": (0.5, 0.5)}, "expected 6, one for each layer, got 2"),
        ({"scheme": "given", "steps": (0.5,) * 6}, "sum 1"),
    ],
)
def test_invalid_designs(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(SMALL, **change)


def test_a_design_has_enough_samples_for_its_teacher() -> None:
    assert replace(SMALL, samples=2, test_samples=1).samples == 2
    with pytest.raises(InputError, match=r"samples: expected more than 2.*got 2 \+ 0"):
        replace(SMALL, samples=2, test_samples=0)
    assert replace(SMALL, samples=2, test_samples=0, teacher=None).teacher is None
    with pytest.raises(InputError, match=r"teacher: expected a Teacher, or None.*got 'fcnn'"):
        replace(SMALL, teacher="fcnn")  # type: ignore[arg-type]


def test_whether_a_design_fits_the_data_is_known_before_training() -> None:
    narrow = Design(2.0, 4, 3, maps="identity", teacher=None)
    narrow.check_fits(3, 2)
    with pytest.raises(InputError, match=r"identity maps need at least 5.*got 3; widen the network"):
        narrow.check_fits(2, 5)
    replace(narrow, maps="learned").check_fits(2, 5)


def test_steps_are_kept_as_a_tuple() -> None:
    for steps in ([0.25, 0.75], torch.tensor([0.25, 0.75])):
        design = replace(SMALL, effective_depth=1.0, layers=2, scheme="given", steps=steps)  # type: ignore[arg-type]
        assert design.steps == (0.25, 0.75)
        assert isinstance(hash(design), int)
    with pytest.raises(InputError, match="steps: expected positive numbers, one for each layer, got 'abc'"):
        replace(SMALL, scheme="given", steps="abc")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epochs": 10.5}, "epochs: expected a whole number from 1, got 10.5"),
        ({"epochs": 0}, "epochs: expected a whole number from 1"),
        ({"method": "newton"}, "method"),
        ({"learning_rate": NAN}, "learning_rate: expected a finite number > 0, got nan"),
        ({"by_depth": "no"}, "by_depth: expected True or False, got 'no'"),
    ],
)
def test_invalid_phases(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Phase(**arguments)


def test_phases_are_kept_as_a_tuple() -> None:
    assert Recipe([Phase()]) == Recipe((Phase(),))  # type: ignore[arg-type]
    for phases in (Phase(), ["adam"], ()):
        with pytest.raises(InputError, match="expected phases"):
            Recipe(phases)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="precision: expected one of float32, float64, got 'half'"):
        Recipe(precision="half")  # type: ignore[arg-type]


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
        ({"seeds": 2.5}, r"seeds: expected several values, as \[2.5\], got 2.5"),
        ({"width": 8}, r"width: expected several values, as \[8\], got 8"),
        ({"scheme": "adaptive"}, r"scheme: expected several values, as \['adaptive'\]"),
        ({"depth": [1.0]}, "got depth"),
    ],
)
def test_invalid_grids(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        grid(SMALL, **arguments)
