"""Paths that are critical to rounding, and a small trained network."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fathometer.leaky.model import LeakyResNet
from fathometer.leaky.nonlinearity import nonlinearity, with_ones
from fathometer.leaky.path import RepresentationPath, path_of
from fathometer.leaky.steps import equidistant
from fathometer.leaky.teacher import Teacher


def critical_path(
    start: Tensor, momentum: Tensor, depth: float, steps: Tensor | int, sigma: str = "relu"
) -> RepresentationPath:
    """A discrete network whose weights are L̃ B_l σ(A_{l−1})ᵀ exactly, from A_0 and B_0.

    It is a critical point of the loss whose target is Y = A_L + λN/2 · B_L. The momenta follow from
    B_{l−1} = (1 − ρL̃) B_l + ρ σ'(A_{l−1}) ⊙ (V_lᵀ B_l), which is solved for B_l by iteration.
    """
    form = nonlinearity(sigma)
    rho = equidistant(steps) if isinstance(steps, int) else steps
    representations, momenta, weights = [start], [momentum], []
    for step in rho.tolist():
        a, b = representations[-1], momenta[-1]
        image = form.function(a)
        bias_image, new = with_ones(image), b
        for _ in range(500):
            pushed = depth * new @ image.mT
            following = (b - step * form.slope(image) * (pushed.mT @ new)) / (1 - step * depth)
            moved = float((following - new).norm() / following.norm())
            new = following
            if moved < 1e-15:
                break
        assert moved < 1e-12, "the iteration for the momenta does not converge: take smaller steps"
        weight = depth * new @ bias_image.mT
        weights.append(weight)
        momenta.append(new)
        representations.append((1 - step * depth) * a + step * (weight @ bias_image))
    return RepresentationPath(
        torch.stack(representations), rho, depth, form, torch.stack(momenta), torch.stack(weights)
    )


def drawn(seed: int, *shape: int, scale: float = 1.0) -> Tensor:
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture(scope="session")
def critical() -> RepresentationPath:
    """L = 2000: the flow to some 1e-3."""
    start = drawn(0, 6, 10)
    return critical_path(start, drawn(1, 6, 10, scale=0.1), 2.0, 2000)


def train(depth: float = 4.0, layers: int = 12, epochs: int = 600, polish: int = 300) -> RepresentationPath:
    """The path of a small network, by Adam and then L-BFGS in float64."""
    task = Teacher((6, 2, 6), seed=0).task(40)
    decay = 0.3 / depth
    net = LeakyResNet(6, 6, width=12, effective_depth=depth, steps=layers).double()
    rates = net.steps[:, None, None]

    def objective() -> Tensor:
        norm = (rates * net.weights.square()).sum() + net.inward.square().sum() + net.outward.square().sum()
        return (net(task.x) - task.y).square().mean() + decay / (2 * depth) * norm

    def rate(epoch: int) -> float:
        late = max(0.0, epoch / epochs - 0.3) / 0.7
        return 1e-4 + 0.5 * (1 + math.cos(math.pi * late))

    adam = torch.optim.Adam(net.parameters(), lr=3e-3 * depth, betas=(0.9, 0.99), eps=1e-16)
    schedule = torch.optim.lr_scheduler.LambdaLR(adam, rate)
    for _ in range(epochs):
        adam.zero_grad()
        objective().backward()
        adam.step()
        schedule.step()
    newton = torch.optim.LBFGS(net.parameters(), max_iter=20, history_size=50, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        newton.zero_grad()
        value = objective()
        value.backward()
        return value

    for _ in range(polish // 20):
        newton.step(closure)
    return path_of(net, task.x, task.y, decay)


@pytest.fixture(scope="session")
def trained() -> RepresentationPath:
    return train()


@pytest.fixture(scope="session")
def untrained() -> RepresentationPath:
    """A network as drawn, with biases: not at a critical point."""
    task = Teacher((6, 2, 6), seed=0).task(40)
    net = LeakyResNet(6, 6, width=12, effective_depth=4.0, steps=12).double()
    with torch.no_grad():
        net.weights[..., -1] += drawn(2, 12, 12)
    return path_of(net, task.x, task.y, 0.075)
