"""Paths that are critical to rounding, and a small trained network."""

from __future__ import annotations

import pytest
import torch

from fathometer.leaky import Design, Phase, Recipe, Teacher, sweep
from fathometer.leaky.model import LeakyResNet
from fathometer.leaky.path import RepresentationPath, path_of
from fathometer.leaky.theory import solved_path
from papers.leaky.instances import drawn


@pytest.fixture(scope="session")
def critical() -> RepresentationPath:
    """L = 2000: the flow to some 1e-3."""
    start = drawn(0, 6, 10)
    return solved_path(start, drawn(1, 6, 10, scale=0.1), 2.0, 2000)


@pytest.fixture(scope="session")
def trained() -> RepresentationPath:
    """A small network, by Adam and then L-BFGS in float64: Proposition 9 is off by 2 % at most."""
    design = Design(4.0, 12, 12, 0.3, teacher=Teacher((6, 2, 6)), samples=40, test_samples=1)
    recipe = Recipe((Phase("adam", 1500, 3e-3), Phase("lbfgs", 500)), precision="float64")
    return sweep(design, recipe, threads=1).runs[0].path


@pytest.fixture(scope="session")
def untrained() -> RepresentationPath:
    """A network as drawn, with biases: not at a critical point."""
    task = Teacher((6, 2, 6), seed=0).task(40)
    net = LeakyResNet(6, 6, width=12, effective_depth=4.0, steps=12).double()
    with torch.no_grad():
        net.weights[..., -1] += drawn(2, 12, 12)
    return path_of(net, task.x, task.y, 0.075)
