"""Small networks and tasks for the tests of the leaky lab."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch

from fathometer.leaky import Design, LeakySweep, Phase, Recipe, Teacher, sweep
from fathometer.leaky.model import LeakyResNet
from fathometer.leaky.stack import Stack
from fathometer.leaky.teacher import Task

SMALL = Design(3.0, 6, 12, 0.1, teacher=Teacher((5, 2, 4)), samples=40, test_samples=10)
SHORT = Recipe((Phase("adam", 80, 3e-3),))


def nets_and_tasks(
    sigma: str = "relu", dtype: torch.dtype = torch.float64
) -> tuple[list[LeakyResNet], list[Task]]:
    """Three networks of one shape that differ in everything else."""
    nets = [
        LeakyResNet(6, 5, width=9, effective_depth=depth, steps=7, sigma=sigma, seed=seed, dtype=dtype)
        for seed, depth in enumerate((0.0, 2.0, 5.0))
    ]
    return nets, [Teacher((6, 2, 5), seed=seed).task(20, 8) for seed in range(3)]


def stack(nets: list[LeakyResNet], tasks: list[Task], dtype: torch.dtype = torch.float64) -> Stack:
    """The networks as a stack, with different decays."""
    return Stack(nets, tasks, [0.1, 0.02, 0.01][: len(nets)], torch.device("cpu"), dtype)


def measured_sweep(designs: Sequence[Design]) -> LeakySweep:
    """Trained for a moment, their measures taken already: such networks are not critical, and say so."""
    found = sweep(designs, SHORT, threads=1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not at a critical point")
        assert len(found.table) == len(found.runs)
    return found
