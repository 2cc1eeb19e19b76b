"""The leaky lab on a GPU, against the CPU and against autograd."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fathometer.leaky import Phase, Recipe, grid, load_sweep, preset, sweep
from fathometer.leaky.adam import Adam, cosine
from fathometer.leaky.stack import Stack, capture_cuda_graph
from fathometer.leaky.training import WARM_UP
from tests.leaky.networks import SHORT, SMALL, nets_and_tasks

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of torch's own, when it first compiles
]
GPU = torch.device("cuda")


@pytest.mark.parametrize("sigma", ["relu", "softplus", "identity"])
def test_gradients_are_those_of_the_cpu(sigma: str) -> None:
    nets, tasks = nets_and_tasks(sigma)
    decays = [0.1, 0.02, 0.01]
    here, there = (Stack(nets, tasks, decays, device, torch.float64) for device in (torch.device("cpu"), GPU))
    here.differentiate()
    there.differentiate()
    for name, ours in there.trimmed(there.gradients).items():
        assert (ours.cpu() - here.trimmed(here.gradients)[name]).abs().max() < 1e-12
    assert bool((there.gradients.weights[..., there.columns :] == 0).all())
    assert (there.moves().cpu() - here.moves()).abs().max() < 1e-12
    assert (there.criticality().cpu() - here.criticality()).abs().max() < 1e-9


def test_a_replayed_graph_trains_as_single_steps_do() -> None:
    nets, tasks = nets_and_tasks()
    stacks = [Stack(nets, tasks, [0.1, 0.02, 0.01], GPU, torch.float64) for _ in range(2)]
    eager, graphed = (Adam(stack, [0.01] * 3, cosine(40)) for stack in stacks)
    for _ in range(40):
        eager.step()
    for _ in range(WARM_UP):
        graphed.step()
    replay = capture_cuda_graph(graphed.step)
    for _ in range(40 - WARM_UP):
        replay()
    torch.cuda.synchronize()
    assert (stacks[0].parameters.weights - stacks[1].parameters.weights).abs().max() < 1e-12
    assert graphed.epoch.item() == 40


def test_a_sweep_ends_where_the_cpu_does() -> None:
    designs = [*grid(SMALL, effective_depth=[1.0, 3.0], seeds=2), replace(SMALL, scheme="adaptive")]
    recipe = Recipe((Phase("adam", 60, 3e-3), Phase("lbfgs", 20)), precision="float64")
    here = sweep(designs, recipe)
    there = sweep(designs, recipe, device="cuda")
    for a, b in zip(here.runs, there.runs, strict=True):
        assert (a.net.weights - b.net.weights).abs().max() < 1e-5
        assert torch.allclose(a.net.steps, b.net.steps, atol=1e-9)
        assert b.history.error.iloc[-1] == pytest.approx(a.history.error.iloc[-1], rel=1e-5)


def test_a_killed_sweep_continues_to_the_same_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    designs = grid(SMALL, effective_depth=[1.0, 3.0], seeds=2)
    whole = sweep(designs, SHORT, device="cuda")
    monkeypatch.setattr("fathometer.leaky.sweeping.CHECKPOINT_EVERY", 0.0)

    def kill(done: int, total: int | None, note: str = "") -> None:
        del total, note
        if done > 150:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(designs, SHORT, device="cuda", out=tmp_path / "run", progress=kill)
    again = sweep(designs, SHORT, device="cuda", out=tmp_path / "run", resume=True)
    for a, b, c in zip(whole.runs, again.runs, load_sweep(tmp_path / "run").runs, strict=True):
        assert torch.equal(a.net.weights, b.net.weights)
        assert torch.equal(a.net.weights, c.net.weights)


def test_the_paper_preset_finds_its_rank() -> None:
    paper = preset("paper")
    table = sweep(grid(paper.design, effective_depth=[7.0, 14.0], seeds=2), paper.recipe, device="cuda").table
    assert (table["rank"] == 3).all()
    assert (table["crit"] < 0.08).all()
    assert table["hamiltonian"].between(2.5, 3).all()
    assert table["cost_of_identity"].between(3, 5.5).all()
