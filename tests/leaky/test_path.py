from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.leaky import LeakyResNet, path_of, path_through


@pytest.fixture(scope="module")
def net() -> LeakyResNet:
    return LeakyResNet(4, 3, width=6, effective_depth=2.0, steps=5)


@pytest.mark.parametrize("decay", [float("nan"), 0.0, "small"])
def test_a_bad_decay_is_refused(net: LeakyResNet, decay: Any) -> None:
    with pytest.raises(InputError, match="decay: expected a finite number > 0, got"):
        path_of(net, torch.randn(7, 4), torch.randn(7, 3), decay)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (torch.ones(7, 5), torch.ones(7, 3), r"x: expected \[samples, 4\].*got \[7, 5\]"),
        (torch.ones(0, 4), torch.ones(0, 3), r"x: expected \[samples, 4\].*got \[0, 4\]"),
        (torch.ones(7, 4), torch.ones(7, 1), r"y: expected \[7, 3\].*got \[7, 1\]"),
    ],
)
def test_data_that_do_not_fit_are_refused(net: LeakyResNet, x: Tensor, y: Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        path_of(net, x, y, 0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"effective_depth": -1.0}, "effective_depth: expected a finite number from 0, got -1.0"),
        ({"steps": torch.tensor([2.0, -1.0])}, "steps: expected positive numbers"),
        ({"steps": [0.5, 0.6]}, "steps: expected the sum 1"),
        ({"steps": [0.5, 0.25, 0.25]}, "steps: expected 2, one fewer than points, got 3"),
    ],
)
def test_a_bad_sequence_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        path_through(torch.ones(3, 4, 5), **arguments)


def test_steps_may_be_a_list() -> None:
    path = path_through(torch.ones(3, 4, 5), 0.0, [0.25, 0.75])
    assert path.places.tolist() == [0.0, 0.25, 1.0]
