"""σ by name: torch's functions and those of a user, with slopes by autograd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.leaky import Phase, Recipe, load_sweep, nonlinearity, register_sigma, sweep
from fathometer.leaky.theory import check_all, not_applicable
from tests.leaky.networks import SMALL


@pytest.mark.parametrize("name", ["relu", "softplus", "identity", "gelu", "leaky_relu", "sin", "log_sigmoid"])
def test_the_slope_is_the_derivative(name: str) -> None:
    sigma = nonlinearity(name)
    a = torch.linspace(-3, 3.1, 50, dtype=torch.float64)
    h = 1e-6
    differences = (sigma.function(a + h) - sigma.function(a - h)) / (2 * h)
    torch.testing.assert_close(sigma.slope(a), differences, rtol=1e-6, atol=1e-7)
    assert not sigma.slope(a).requires_grad
    assert sigma.homogeneous == (name in ("relu", "identity", "leaky_relu"))


@pytest.mark.parametrize(
    "name", ["softmax", "rrelu", "relu_", "threshold", "save", "isnan", "log", "cumsum", ""]
)
def test_other_functions_of_torch_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="sigma: "):
        nonlinearity(name)


@pytest.mark.parametrize("function", [lambda a: a / a.sum(), lambda a: torch.rand_like(a), lambda a: a[0]])
def test_a_function_of_your_own_must_be_elementwise(function: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(InputError, match="not an elementwise function"):
        register_sigma("own", function)


def test_a_network_is_trained_with_a_function_of_your_own(tmp_path: Path) -> None:
    register_sigma("own_of_tests", own)
    register_sigma("own_of_tests", own)  # again, as a notebook does
    with pytest.raises(InputError, match="is another function already"):
        register_sigma("relu", own)
    design = replace(SMALL, sigma="own_of_tests", effective_depth=2.0)
    recipe = Recipe((Phase("adam", 300, 3e-3), Phase("lbfgs", 400)), precision="float64")
    run = sweep(design, recipe, out=tmp_path / "run").runs[0]
    assert run.measures.summary["crit"] < 1e-3  # smooth: a critical point is reached
    names = [statement.name for statement in check_all(run.path)]
    assert "Theorem 4, first display, below" in names
    assert not any(name.startswith("Proposition") for name in names)
    assert set(not_applicable(run.net.sigma)) == {
        "Propositions 1 to 3", "Proposition 5", "Proposition 9", "Section 1.2, output scaling", "Footnote 1",
    }  # fmt: skip
    assert load_sweep(tmp_path / "run").runs[0].net.sigma.name == "own_of_tests"


def own(a: Tensor) -> Tensor:
    return a * torch.sigmoid(1.7 * a)
