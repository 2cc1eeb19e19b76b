from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fathometer.errors import InputError, NumericalError
from fathometer.leaky.dynamics import flow, velocities
from fathometer.leaky.energy import hamiltonian
from fathometer.leaky.model import with_ones
from fathometer.leaky.nonlinearity import nonlinearity
from fathometer.leaky.path import RepresentationPath
from fathometer.leaky.steps import custom_steps
from fathometer.leaky.theory import hamiltonian_identity
from tests.leaky.test_energy import critical_path, drawn


def start(width: int = 5, samples: int = 8, seed: int = 0) -> tuple[Tensor, Tensor]:
    return drawn(width, samples, seed=seed), 0.05 * drawn(width, samples, seed=seed + 1)


def simpson(values: Tensor) -> float:
    """∫ over [0, 1] of what is known at an odd number of equidistant places."""
    factors = torch.ones_like(values)
    factors[1:-1:2], factors[2:-1:2] = 4, 2
    return ((factors * values).sum() / (3 * (len(values) - 1))).item()


@pytest.mark.parametrize("sigma", ["relu", "softplus", "identity"])
def test_velocities_are_the_gradients_of_the_hamiltonian(sigma: str) -> None:
    a, b = (t.requires_grad_() for t in start())
    function = nonlinearity(sigma)
    of_a, of_b = torch.autograd.grad(hamiltonian(a, b, function, 3.0), (a, b))
    forward, backward = velocities(a, b, function, 3.0)
    torch.testing.assert_close(forward, of_b, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(backward, -of_a, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("depth", [1.0, 4.0])
def test_a_smooth_flow_conserves_its_hamiltonian(depth: float) -> None:
    found = flow(*start(), depth, sigma="softplus", tolerance=1e-9)
    momenta, weights = found.path.require_momenta()
    again = hamiltonian(found.path.representations, momenta, found.path.sigma, depth)
    torch.testing.assert_close(again, found.hamiltonian)
    assert found.drift == pytest.approx(((again - again[0]).abs().max() / again[0].abs()).item())
    assert found.drift < 1e-6
    assert (found.path.representations[-1] - found.path.representations[0]).norm() > 1
    assert weights.shape == (20, 5, 6)


@pytest.mark.parametrize("depth", [1.0, 3.0])
def test_proposition_9_has_a_factor_2(depth: float) -> None:
    found = flow(*start(4, 6), depth, steps=40, tolerance=1e-8)
    norms, bias = found.weights.square().sum((-2, -1)), found.weights[..., -1].square().sum(-1)
    ratio = (norms[-1] - norms[0]).item() / (depth * simpson(bias))
    assert ratio == pytest.approx(2, abs=0.01)
    momenta, _ = found.path.require_momenta()
    products = (momenta * found.path.representations).sum((-2, -1))
    assert (products[-1] - products[0]).item() == pytest.approx(simpson(bias) / depth, rel=0.005)


@pytest.mark.parametrize("gamma0", [1e-1, 1e-4])
def test_the_identity_of_appendix_a2_holds_on_a_flow(gamma0: float) -> None:
    depth, h = 2.0, 5e-3
    steps = custom_steps([0.5 - 3 * h, *[h] * 6, 0.5 - 3 * h])
    found = flow(*start(), depth, steps=steps, sigma="softplus", tolerance=1e-12).path
    momenta, weights = found.require_momenta()
    a, b = found.representations, momenta[4].expand(2, -1, -1)
    factors = torch.tensor([-1.0, 9, -45, 0, 45, -9, 1], dtype=torch.float64) / (60 * h)
    velocity = (factors[:, None, None] * a[1:8]).sum(0)  # central differences, not the equation

    def error(end: Tensor) -> float:
        """How far one step of length 1 from A_4 to `end` is from the identity."""
        ends, whole = torch.stack([a[4], end]), torch.ones(1, dtype=torch.float64)
        step = RepresentationPath(ends, whole, depth, found.sigma, b, weights[:1])
        return hamiltonian_identity(step, gamma0).error

    assert error(a[4] + velocity) < 1e-8
    assert error(a[4]) > 1e-3


def test_a_scalar_linear_flow_in_closed_form() -> None:
    # one neuron, one sample, b σ(a)ᵀ = (ab, b): from a = 0, b = 0 nothing moves; B = 0 lets A decay
    zero = torch.zeros(1, 1, dtype=torch.float64)
    assert flow(zero, zero, 3.0).path.representations.abs().max() == 0
    decaying = flow(zero + 2, zero, 3.0, steps=4, sigma="identity").path
    torch.testing.assert_close(decaying.representations[:, 0, 0], 2 * torch.exp(-3 * decaying.places))


def test_weights_are_those_of_the_flow() -> None:
    found = flow(*start(), 2.0, steps=10, sigma="softplus")
    momenta, weights = found.path.require_momenta()
    expected = 2.0 * momenta @ with_ones(found.path.images).mT
    torch.testing.assert_close(found.weights, expected)
    torch.testing.assert_close(weights, expected[:-1])


def test_a_network_with_critical_weights_tends_to_the_flow() -> None:
    def miss(path: RepresentationPath) -> float:
        a, b = path.representations, path.momenta
        assert b is not None
        exact = flow(a[0], b[0], 1.0, steps=2, sigma="softplus").path.representations[-1]
        return (a[-1] - exact).norm().item()

    coarse, fine = (miss(critical_path(layers, 1.0, "softplus")) for layers in (20, 40))
    assert math.log2(coarse / fine) == pytest.approx(1, abs=0.15)


def test_a_flow_that_cannot_be_followed_is_an_error() -> None:
    a, b = drawn(3, 2, seed=1), drawn(3, 2, seed=2)
    with pytest.raises(NumericalError, match="the flow diverges, or turns too fast to follow, at p = 0"):
        flow(a, b, 30.0, sigma="identity", tolerance=1e-6)


@pytest.mark.parametrize(
    ("b", "message"),
    [(torch.ones(4, 8), "of one shape"), (torch.full((5, 8), math.inf), "finite A and B")],
)
def test_momenta_that_do_not_fit_are_refused(b: Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        flow(start()[0], b, 1.0)
