from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize, rosen, rosen_der
from torch import Tensor

from fathometer.leaky import Phase, Recipe
from fathometer.leaky.lbfgs import LBFGS
from fathometer.leaky.training import Training
from tests.leaky.networks import SMALL, nets_and_tasks


def rosenbrock(x: Tensor) -> tuple[Tensor, Tensor]:
    points = x.numpy()
    values = torch.tensor([rosen(point) for point in points])
    return values, torch.from_numpy(np.stack([rosen_der(point) for point in points]))


def test_it_needs_about_as_many_evaluations_as_scipy() -> None:
    start = torch.randn(4, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    needed = []
    for point in start.numpy():
        found = minimize(rosen, point, jac=rosen_der, method="L-BFGS-B", options={"maxcor": 20, "gtol": 1e-8})
        needed.append(found.nfev)
    search = LBFGS(rosenbrock, start)
    for _ in range(int(1.5 * max(needed))):
        search.step()
    assert rosenbrock(search.point)[1].abs().max() < 1e-6


def test_problems_do_not_mix() -> None:
    start = torch.randn(3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    together, alone = LBFGS(rosenbrock, start), LBFGS(rosenbrock, start[1:2])
    for _ in range(60):
        together.step()
        alone.step()
    assert (together.point[1] - alone.point[0]).abs().max() < 1e-6


def test_a_kink_is_no_obstacle_and_a_minimum_is_the_end() -> None:
    """f = |x| + x²/2 + |y|·2: the minimum is at both kinks."""

    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        value = x[:, 0].abs() + x[:, 0] ** 2 / 2 + 2 * x[:, 1].abs()
        return value, torch.stack([x[:, 0].sign() + x[:, 0], 2 * x[:, 1].sign()], 1)

    search = LBFGS(function, torch.tensor([[3.0, -1.7]], dtype=torch.float64))
    values = []
    for _ in range(300):
        search.step()
        values.append(search.value.item())
    assert values[-1] < 1e-3
    assert all(after <= before for before, after in itertools.pairwise(values))
    still = LBFGS(lambda x: (x.square().sum(1), 2 * x), torch.zeros(1, 3, dtype=torch.float64))
    still.step()
    assert still.stuck.all()


def test_smooth_networks_come_to_a_critical_point() -> None:
    """A linear network's loss has no kinks: `crit` falls by orders of magnitude."""
    design = replace(SMALL, sigma="identity")
    task = nets_and_tasks()[1][0]
    training = Training(
        [design], [task], Recipe((Phase("adam", 200, 3e-3), Phase("lbfgs", 600))), torch.device("cpu")
    )
    while not training.finished:
        training.advance()
    history = training.history[0]
    after_adam = next(row["crit"] for row in history if row["epoch"] == 200)
    assert history[-1]["crit"] < 1e-3 * after_adam
    assert history[-1]["error"] + history[-1]["decay"] == pytest.approx(
        min(row["error"] + row["decay"] for row in history), abs=1e-12
    )
