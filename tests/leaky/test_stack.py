from __future__ import annotations

import pytest
import torch

from fathometer.leaky.adam import BETAS, EPSILON, Adam, Descent, cosine
from fathometer.leaky.model import LeakyResNet
from fathometer.leaky.path import path_of
from fathometer.leaky.stack import Stack
from fathometer.leaky.teacher import Task
from tests.leaky.networks import nets_and_tasks, stack


def loss(net: LeakyResNet, task: Task, decay: float) -> torch.Tensor:
    norms = (net.steps[:, None, None] * net.weights.square()).sum()
    norms = norms + net.input_map.square().sum() + net.output_map.square().sum()
    return (net(task.x.to(net.weights.dtype)) - task.y).square().mean() + decay / 2 * norms


@pytest.mark.parametrize("sigma", ["relu", "softplus", "identity", "gelu"])
def test_gradients_are_those_of_autograd(sigma: str) -> None:
    nets, tasks = nets_and_tasks(sigma)
    together = stack(nets, tasks)
    losses = together.losses(together.differentiate())
    for number, (net, task, decay) in enumerate(zip(nets, tasks, (0.1, 0.02, 0.01), strict=True)):
        value = loss(net, task, decay)
        value.backward()
        assert (losses.error + losses.decay)[number].item() == pytest.approx(value.item(), abs=1e-12)
        for ours, theirs in (
            (together.gradients.weights[:, number], net.weights.grad),
            (together.gradients.input_map[number], net.input_map.grad),
            (together.gradients.output_map[number], net.output_map.grad),
        ):
            assert theirs is not None
            assert theirs.abs().max() > 1e-6
            assert (ours - theirs).abs().max() < 1e-12


def test_moves_and_criticality_are_those_of_the_path() -> None:
    nets, tasks = nets_and_tasks()
    together = stack(nets, tasks)
    moves, crit = together.moves(), together.criticality()
    for number, (net, task, decay) in enumerate(zip(nets, tasks, (0.1, 0.02, 0.01), strict=True)):
        path = path_of(net, task.x, task.y, decay * (net.effective_depth or 1.0))
        a = path.representations
        expected = (a[1:] - a[:-1]).flatten(1).norm(dim=1) / a[1:].flatten(1).norm(dim=1)
        assert torch.allclose(moves[:, number], expected, atol=1e-13)
        assert path.momenta is not None
        assert path.weights is not None
        ones = torch.ones_like(a[:-1, :1])
        images = torch.cat([a[:-1].relu(), ones], 1)
        best = (net.effective_depth or 1.0) * path.momenta[1:] @ images.mT
        relative = (path.weights - best).flatten(1).norm(dim=1) / path.weights.flatten(1).norm(dim=1)
        assert crit[number].item() == pytest.approx(relative.median().item(), rel=1e-9)


def test_adam_is_that_of_torch() -> None:
    nets, tasks = nets_and_tasks()
    nets, tasks = nets[1:2], tasks[1:2]
    together = Stack(nets, tasks, [0.02], torch.device("cpu"), torch.float64)
    schedule = cosine(30)
    ours = Adam(together, [0.01], schedule)
    theirs = torch.optim.Adam(nets[0].parameters(), 0.01, BETAS, EPSILON)
    schedule_of_torch = torch.optim.lr_scheduler.LambdaLR(
        theirs, lambda epoch: schedule[min(epoch, 29)].item()
    )
    for _ in range(30):
        ours.step()
        theirs.zero_grad()
        loss(nets[0], tasks[0], 0.02).backward()
        theirs.step()
        schedule_of_torch.step()
    assert (together.parameters.weights[:, 0] - nets[0].weights).abs().max() < 1e-10
    assert (together.parameters.input_map[0] - nets[0].input_map).abs().max() < 1e-10


def test_descent_is_that_of_torch_and_fixed_maps_stay() -> None:
    net = LeakyResNet(6, 5, width=9, effective_depth=2.0, steps=4, maps="fixed").double()
    task = nets_and_tasks()[1][0]
    together = Stack([net], [task], [0.02], torch.device("cpu"), torch.float64)
    before = together.parameters.input_map.clone()
    ours, theirs = Descent(together, [0.05], torch.ones(5)), torch.optim.SGD(net.parameters(), 0.05)
    for _ in range(5):
        ours.step()
        theirs.zero_grad()
        loss(net, task, 0.02).backward()
        theirs.step()
    assert (together.parameters.weights[:, 0] - net.weights).abs().max() < 1e-13
    assert torch.equal(together.parameters.input_map, before)
