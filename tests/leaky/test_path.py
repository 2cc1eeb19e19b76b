from __future__ import annotations

from typing import Any

import pytest
import torch

from fathometer.errors import InputError
from fathometer.leaky import LeakyResNet, path_of, path_through


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decay": 0.0}, "decay: expected a finite number > 0, got"),
        ({"x": torch.ones(7, 5)}, r"x: expected \[samples, 4\].*got \[7, 5\]"),
        ({"y": torch.ones(7, 1)}, r"y: expected \[7, 3\].*got \[7, 1\]"),
    ],
)
def test_data_that_do_not_fit_the_network_are_refused(change: dict[str, Any], message: str) -> None:
    net = LeakyResNet(4, 3, width=6, effective_depth=2.0, steps=5)
    with pytest.raises(InputError, match=message):
        path_of(net, **{"x": torch.ones(7, 4), "y": torch.ones(7, 3), "decay": 0.1, **change})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"effective_depth": -1.0}, "effective_depth: expected a finite number from 0, got -1.0"),
        ({"steps": [0.5, 0.6]}, "steps: expected the sum 1"),
        ({"steps": [0.5, 0.25, 0.25]}, "steps: expected 2, one fewer than points, got 3"),
    ],
)
def test_a_path_through_needs_a_depth_and_fitting_steps(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        path_through(torch.ones(3, 4, 5), **arguments)
    assert path_through(torch.ones(3, 4, 5), 0.0, [0.25, 0.75]).places.tolist() == [0.0, 0.25, 1.0]
