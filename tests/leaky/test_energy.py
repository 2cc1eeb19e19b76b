from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fathometer.errors import InputError, NumericalError
from fathometer.gauges import cost_of_identity
from fathometer.leaky.energy import (
    balance,
    criticality,
    exact_cost,
    gamma_of,
    hamiltonian,
    hamiltonians,
    in_dimensions,
    kernel_norm2,
    kernel_products,
)
from fathometer.leaky.model import LeakyResNet, with_ones
from fathometer.leaky.nonlinearity import nonlinearity
from fathometer.leaky.path import RepresentationPath, path_of, path_through
from fathometer.leaky.steps import irregular
from fathometer.leaky.theory import solved_path

SHAPES = [(3, 20), (8, 8), (12, 5), (1, 1)]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def dense(m: Tensor, n: Tensor, s: Tensor, gamma: float) -> float:
    kernel = s.mT @ s + gamma * torch.eye(s.shape[-1], dtype=s.dtype)
    return torch.trace(m @ torch.linalg.solve(kernel, n.mT)).item()


def critical_path(
    layers: int, depth: float = 1.0, sigma: str = "relu", width: int = 4, samples: int = 7, seed: int = 0
) -> RepresentationPath:
    """The path of a critical network, from a start drawn at random."""
    start, momentum = drawn(width, samples, seed=seed), 0.4 / samples * drawn(width, samples, seed=seed + 1)
    return solved_path(start, momentum, depth, layers, sigma)


@pytest.mark.parametrize(("width", "samples"), SHAPES)
@pytest.mark.parametrize("gamma", [1.0, 1e-3, 1e-6])
def test_kernel_norms_are_the_dense_formula(width: int, samples: int, gamma: float) -> None:
    m, s = drawn(3, 4, samples), drawn(3, width, samples, seed=2)
    for kernel in (s, with_ones(s.relu())):
        norms = kernel_norm2(m, kernel, gamma)
        for i in range(3):
            assert norms[i].item() == pytest.approx(dense(m[i], m[i], kernel[i], gamma), rel=1e-7)


def test_without_gamma_all_is_infinite_but_nothing() -> None:
    m = torch.stack([drawn(2, 6), torch.zeros(2, 6, dtype=torch.float64)])
    dead = torch.zeros(2, 3, 6, dtype=torch.float64)
    assert kernel_norm2(m, dead, gamma_of(dead)).tolist() == [math.inf, 0]


def test_gamma_is_scaled_by_the_largest_eigenvalue_of_the_kernel() -> None:
    images = drawn(4, 3, 10).relu()
    largest = torch.linalg.eigvalsh(images.mT @ images)[:, -1]
    torch.testing.assert_close(gamma_of(images, 0.25), 0.25 * largest)
    with pytest.raises(InputError, match="gamma0: expected a finite number > 0"):
        gamma_of(images, math.nan)


def test_kernel_norms_need_a_ridge_from_0_that_is_not_too_small() -> None:
    m = drawn(2, 6)
    with pytest.raises(InputError, match="gamma: expected finite numbers from 0"):
        kernel_norm2(m, m, -1.0)
    with pytest.raises(NumericalError, match="raise gamma"):
        kernel_norm2(torch.ones(9, 9).double(), torch.ones(9, 9).double(), 1e-40)


@pytest.mark.parametrize(("width", "samples"), [(4, 30), (6, 6), (9, 5)])
def test_nonnegative_representations_cost_their_rank(width: int, samples: int) -> None:
    rank = 3
    a = drawn(width, rank).abs() @ drawn(rank, samples, seed=1).abs()
    assert exact_cost(a, a.relu()).item() == pytest.approx(rank, rel=1e-8)
    costs = [kernel_norm2(a, a, gamma_of(a, gamma0)).item() for gamma0 in (1e-2, 1e-4, 1e-6, 1e-8)]
    assert all(less < more for less, more in itertools.pairwise(costs))
    assert costs[-1] == pytest.approx(rank, rel=1e-3)
    assert costs[1] == pytest.approx(cost_of_identity(a.mT, a.mT, gamma=1e-4).item(), rel=1e-9)


def test_the_exact_cost_is_that_of_the_pseudo_inverse() -> None:
    wide = drawn(9, 5)
    inverse = torch.linalg.pinv(wide.relu())
    assert exact_cost(wide, wide.relu()).item() == pytest.approx((wide @ inverse).square().sum().item())
    assert exact_cost(torch.zeros(3, 40), torch.zeros(3, 40)) == 0


def test_exact_cost_is_infinite_outside_the_image() -> None:
    rows = torch.tensor([1e-3, 1e-8, 1e-9, 1e-12, 0.0], dtype=torch.float64)
    a = torch.cat([drawn(3, 9).abs().expand(5, -1, -1), -rows[:, None, None].expand(-1, 1, 9)], 1)
    found = exact_cost(a, a.relu()).tolist()  # also a batch
    assert found[:3] == [math.inf] * 3
    assert found[3:] == pytest.approx([3, 3])


def test_criticality_of_a_plain_resnet_is_the_slope_of_its_loss() -> None:
    net = LeakyResNet(3, 2, width=6, effective_depth=0.0, steps=irregular(5, 0.7)).double()
    x, y, decay = drawn(11, 3), drawn(11, 2, seed=1), 0.3
    loss = (net(x) - y).square().mean()
    loss = loss + decay / 2 * (net.steps[:, None, None] * net.weights.square()).sum()
    (slopes,) = torch.autograd.grad(loss, [net.weights])
    expected = slopes.flatten(1).norm(dim=1) / (decay * net.steps) / net.weights.flatten(1).norm(dim=1)
    torch.testing.assert_close(criticality(path_of(net, x, y, decay)), expected.detach())


def test_hamiltonian_entry_by_entry() -> None:
    a, b, relu = drawn(2, 3), drawn(2, 3, seed=1), nonlinearity("relu")
    pushed = sum(
        sum(b[i, n].item() * s[n].item() for n in range(3)) ** 2
        for i in range(2)
        for s in (a[0].relu(), a[1].relu(), torch.ones(3))
    )
    expected = 2.5 / 2 * pushed - 2.5 * (a * b).sum().item()
    assert hamiltonian(a, b, relu, 2.5).item() == pytest.approx(expected)
    assert in_dimensions(torch.tensor(expected), 2.5).item() == pytest.approx(-2 * expected / 2.5)


@pytest.mark.parametrize("sigma", ["relu", "softplus"])
def test_momenta_are_the_gradients_of_the_loss(sigma: str) -> None:
    net = LeakyResNet(3, 2, width=6, effective_depth=2.0, steps=irregular(5, 0.7), sigma=sigma).double()
    x, y, decay = drawn(11, 3), drawn(11, 2, seed=1), 0.3
    path = path_of(net, x, y, decay)
    points = [net.input_map @ x.mT]
    for step, weight in zip(net.steps, net.weights, strict=True):
        a = points[-1]
        points.append((1 - step * 2.0) * a + step * (weight @ with_ones(net.sigma.function(a))))
    loss = ((net.output_map @ points[-1]).mT - y).square().mean()
    gradients = torch.stack(torch.autograd.grad(loss, points))
    momenta, weights = path.require_momenta()
    assert (momenta + gradients / decay).abs().max() <= 1e-12 * momenta.abs().max()
    assert (weights - net.weights).abs().max() == 0


def test_criticality_is_how_far_the_weights_are_from_those_of_the_momenta() -> None:
    path = critical_path(8)
    assert criticality(path).max() < 1e-13
    off = replace(path, weights=1.25 * path.require_momenta()[1])
    torch.testing.assert_close(criticality(off), torch.full((8,), 0.2, dtype=torch.float64))


def test_the_mean_hamiltonian_is_conserved_to_second_order() -> None:
    spread = {
        layers: [(h.max() - h.min()).item() for h in hamiltonians(critical_path(layers, sigma="softplus"))]
        for layers in (40, 80)
    }
    order = [math.log2(coarse / fine) for coarse, fine in zip(spread[40], spread[80], strict=True)]
    assert order[0] == pytest.approx(1, abs=0.15)
    assert order[1] == pytest.approx(1, abs=0.15)
    assert order[2] > 1.7


@pytest.mark.parametrize("samples", [3, 15])
def test_kernel_products_of_a_path_are_the_dense_formula(samples: int) -> None:
    path = path_through(drawn(6, 4, samples), 2.0)
    gamma = gamma_of(path.images[:-1], 1e-2)
    found = kernel_products(path, gamma)
    for layer in range(5):
        a, velocity, s = path.representations[layer], path.velocities[layer], with_ones(path.images[layer])
        pairs = [(velocity, velocity), (velocity, a), (a, a)]
        expected = [dense(m, n, s, gamma[layer].item()) for m, n in pairs]
        assert [part[layer].item() for part in found] == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_what_a_path_does_not_know_is_an_error() -> None:
    plain, bare = replace(critical_path(3), effective_depth=0.0), path_through(drawn(3, 4, 5))
    with pytest.raises(InputError, match="effective_depth: expected a finite number > 0, got 0"):
        balance(plain)
    for driven in (hamiltonians, criticality, balance):
        with pytest.raises(InputError, match="no momenta"):
            driven(bare)
    with pytest.raises(InputError, match="got softplus"):
        balance(critical_path(3, sigma="softplus"))
