"""The symmetries of section 1.2, footnote 1, and the integrator they rest on."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from fathometer.errors import InputError
from fathometer.leaky.model import with_ones
from fathometer.leaky.nonlinearity import nonlinearity
from fathometer.leaky.path import RepresentationPath
from fathometer.leaky.theory import integration_range, linear_flow, middle_term, output_scaling, solved_path
from fathometer.leaky.theory.symmetries import through_layer
from papers.leaky.instances import SmoothCurve, drawn


@pytest.mark.parametrize("stretch", [0.3, 100.0])
def test_the_range_of_integration_does_not_matter(trained: RepresentationPath, stretch: float) -> None:
    for found in integration_range(trained, stretch):
        assert found.holds
        assert found.error < 1e-12


def test_the_outputs_scale_with_the_leak(trained: RepresentationPath) -> None:
    for shift in (-2.0, 0.5, 2.0):
        for found in output_scaling(trained, shift):
            assert found.holds
            assert found.error < 1e-12


def test_the_network_tends_to_the_exponential() -> None:
    gaps = []
    for steps in (50, 100, 200):
        path = solved_path(drawn(0, 4, 6), drawn(1, 4, 6, scale=0.05), 1.0, steps)
        gaps.append(output_scaling(path)[0].details["kappa_from_exponential"])
    assert gaps[0] / gaps[1] == pytest.approx(2, rel=0.1)
    assert gaps[1] / gaps[2] == pytest.approx(2, rel=0.1)


def test_biases_and_other_nonlinearities_break_the_scaling(trained: RepresentationPath) -> None:
    assert [found.holds for found in output_scaling(trained, bias=True)] == [False, False]
    path = solved_path(drawn(0, 4, 6), drawn(1, 4, 6, scale=0.05), 1.0, 20, "softplus")
    assert [found.holds for found in output_scaling(path)] == [False, False]
    assert all(found.holds for found in integration_range(path))


def test_shifts_and_stretches_that_are_not_possible_are_refused(trained: RepresentationPath) -> None:
    for shift, message in ((20.0, "use c <"), (math.nan, "shift: expected a finite c")):
        with pytest.raises(InputError, match=message):
            output_scaling(trained, shift)
    with pytest.raises(InputError, match="stretch: expected a finite number > 0"):
        integration_range(trained, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_the_integrator_agrees_with_a_general_one(seed: int) -> None:
    start, weight = drawn(seed, 6, 4), drawn(seed + 100, 6, 7, scale=2.0)

    def slope(_: float, flat: object) -> object:
        a = torch.as_tensor(flat).view(6, 4)
        return (weight @ with_ones(a.relu()) - 1.5 * a).flatten().numpy()

    reference = solve_ivp(slope, (0, 0.7), start.flatten().numpy(), rtol=1e-10, atol=1e-12, max_step=1e-3).y
    found = through_layer(start, weight, 0.7, 1.5, nonlinearity("relu"))
    assert torch.allclose(found, torch.as_tensor(reference[:, -1]).view(6, 4), rtol=0, atol=1e-7)


def test_the_integrator_is_exact_for_linear_flows() -> None:
    start, weight = drawn(0, 5, 3), drawn(1, 5, 6)
    weight[:, -1] = 0
    found = through_layer(start, weight, 0.7, 1.5, nonlinearity("identity"))
    exact = expm(0.7 * (weight[:, :-1].numpy() - 1.5 * torch.eye(5).numpy())) @ start.numpy()
    assert torch.allclose(found, torch.as_tensor(exact), rtol=1e-12, atol=1e-13)


def test_the_middle_term_depends_on_the_ends_alone_in_a_linear_network() -> None:
    curve = SmoothCurve()
    found = middle_term(curve.at, curve.velocity)
    assert found.details["rank"] == 2
    assert found.error < 1e-6
    assert found.holds
    assert not middle_term(curve.at, curve.velocity, sigma="relu").holds
    eye = torch.eye(3).double()
    with pytest.raises(InputError, match="rank changes"):
        middle_term(lambda p: torch.diag(torch.tensor([1.0, 1.0, 1.0 - p]).double()), lambda _: eye)


def test_the_middle_term_along_a_linear_network() -> None:
    path = solved_path(drawn(0, 5, 8), drawn(1, 5, 8, scale=0.05), 1.0, 10, "identity")
    found = linear_flow(path)
    assert found.holds
    assert found.error < 1e-10
    with pytest.raises(InputError, match="linear networks"):
        linear_flow(solved_path(drawn(0, 5, 8), drawn(1, 5, 8, scale=0.05), 1.0, 10))
