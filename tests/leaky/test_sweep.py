from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fathometer.errors import InputError, NumericalError
from fathometer.leaky import (
    Design,
    LeakyRun,
    LeakySweep,
    Phase,
    Recipe,
    grid,
    load_sweep,
    own_task,
    preset,
    sweep,
)
from fathometer.leaky.run_files import SweepFolder, TensorFile, read_tensors, write_tensors
from fathometer.leaky.teacher import Task
from fathometer.leaky.training import Training
from tests.leaky.networks import SHORT, SMALL

CPU = torch.device("cpu")


def _task() -> Task:
    assert SMALL.teacher is not None
    return SMALL.teacher.task(SMALL.samples, SMALL.test_samples)


def finished(training: Training) -> Training:
    while not training.finished:
        training.advance()
    return training


def same(a: LeakySweep, b: LeakySweep) -> bool:
    return all(
        torch.equal(x, y)
        for one, other in zip(a.runs, b.runs, strict=True)
        for x, y in zip(one.net.state_dict().values(), other.net.state_dict().values(), strict=True)
    )


@pytest.mark.parametrize("layers", [4, 5])
def test_training_lowers_the_loss_and_records_it(layers: int) -> None:
    run = sweep(replace(SMALL, layers=layers), SHORT).runs[0]
    loss = run.history.error + run.history.decay
    assert loss.iloc[-1] < 0.7 * loss.iloc[0]
    assert run.history.epoch.to_list() == list(range(2, 81, 2))
    assert run.train_error == pytest.approx(run.history.error.iloc[-1], rel=1e-4)
    assert run.test_error > 0
    assert run.diverged is None
    # one median for both, of an even number of layers too
    assert run.history["crit"].iloc[-1] == pytest.approx(run.measure(warn=False).summary["crit"], rel=1e-3)


def test_siblings_differ_in_depth_alone_and_did_not_diverge() -> None:
    designs = [
        SMALL,
        replace(SMALL, effective_depth=2.0),
        replace(SMALL, effective_depth=0.0),
        replace(SMALL, effective_depth=0.5, layers=2),
        replace(SMALL, effective_depth=1.0),
    ]
    found = sweep(designs, SHORT)
    assert found.siblings(found.runs[0]) == [found.runs[1], found.runs[4]]
    found = replace(found, runs=(*found.runs[:4], replace(found.runs[4], diverged=3)))
    assert found.siblings(found.runs[0]) == [found.runs[1]]


def test_threads_do_not_change_the_result_and_networks_do_not_mix() -> None:
    designs = grid(SMALL, effective_depth=[1.0, 3.0], seeds=2)
    one, two = (sweep(designs, SHORT, threads=threads) for threads in (1, 2))
    assert same(one, two)
    alone = sweep(designs[2], SHORT)
    assert torch.equal(alone.runs[0].net.weights, one.runs[2].net.weights)
    assert one.runs[0].task is not one.runs[1].task
    assert one.runs[0].task is one.runs[2].task  # one teacher for all depths of a seed


def test_every_state_of_a_training_leads_to_the_same_end() -> None:
    recipe = Recipe((Phase("adam", 12, 3e-3), Phase("sgd", 4, 1e-3), Phase("lbfgs", 5)))
    designs = [replace(SMALL, scheme=scheme) for scheme in ("equidistant", "adaptive")]
    tasks = [_task()] * 2
    first = Training(designs, tasks, recipe, CPU)
    states = []
    while not first.finished:
        first.advance()
        tensors, facts = first.state()
        states.append(({k: v.clone() for k, v in tensors.items()}, json.loads(json.dumps(facts))))
    assert len(states) == 17
    for tensors, facts in states:
        again = Training(designs, tasks, recipe, CPU)
        again.restore(TensorFile(tensors, facts))
        finished(again)
        assert torch.equal(again.nets[0].weights, first.nets[0].weights)
        assert torch.equal(again.nets[1].steps, first.nets[1].steps)


def test_adaptive_steps_move_to_where_the_representation_moves() -> None:
    adaptive = sweep(replace(SMALL, scheme="adaptive"), Recipe((Phase("adam", 400, 3e-3),))).runs[0]
    fixed = sweep(SMALL, Recipe((Phase("adam", 400, 3e-3),))).runs[0]
    assert adaptive.net.steps.sum().item() == pytest.approx(1, abs=1e-6)

    def unevenness(run: LeakyRun) -> float:
        a = run.path.representations.flatten(1)
        moves = a.diff(dim=0).norm(dim=1) / a[1:].norm(dim=1)
        return (moves.max() / moves.min()).item()

    assert unevenness(adaptive) < 0.5 * unevenness(fixed)


def test_a_diverged_run_stops_says_when_and_keeps_the_last_good_weights(tmp_path: Path) -> None:
    wild = Recipe((Phase("adam", 80, 3e-3), Phase("sgd", 400, 1e3)))
    with pytest.raises(NumericalError, match=r"not finite at epoch 90 .*lower learning rate"):
        sweep(SMALL, wild, out=tmp_path / "run")
    kept = SweepFolder.open(tmp_path / "run").read_network(0)
    assert kept.diverged == 90
    assert torch.equal(kept.net.weights, sweep(SMALL, SHORT).runs[0].net.weights)


def test_a_diverged_network_does_not_affect_the_others_in_its_stack() -> None:
    calm = _task()
    wild = own_task(calm.x * 1e25, calm.y)
    recipe = Recipe((Phase("adam", 20), Phase("lbfgs", 5)))
    training = finished(Training([SMALL, SMALL], [calm, wild], recipe, CPU))
    assert training.diverged == [None, 1]
    assert training.history[1] == []
    assert training.done == 25
    assert training.history[0][-1]["epoch"] == 25
    assert torch.equal(training.nets[1].weights, SMALL.network(5, 4).weights)


def test_diverged_networks_are_named_once_and_marked() -> None:
    mixed = Recipe((Phase("sgd", 40, 0.3),))  # times L̃
    designs = [replace(SMALL, effective_depth=depth, layers=600) for depth in (0.1, 500.0)]
    with pytest.warns(UserWarning, match=r"1 of 2 networks diverged \(network 1 at epoch \d+\)"):
        found = sweep(designs, mixed)
    with pytest.warns(UserWarning, match="not at a critical point"):
        assert found.table["diverged"].to_list() == [False, True]


def test_steps_that_became_too_long_are_reported_once() -> None:
    design = replace(SMALL, effective_depth=5.0, scheme="adaptive")
    with pytest.warns(UserWarning, match="1 of 1 networks have steps with ρL̃ ≥ 1"):
        sweep(design, Recipe((Phase("adam", 400, 3e-3),)))


def test_early_stopping_does_not_depend_on_the_other_networks() -> None:
    task = _task()
    designs = [SMALL, replace(SMALL, effective_depth=1.0)]
    whole = finished(Training(designs, [task, task], SHORT, CPU))
    limits = [min(row["crit"] for row in history) for history in whole.history]
    recipe = replace(SHORT, tolerance=1.001 * max(limits))
    together = finished(Training(designs, [task, task], recipe, CPU))
    assert together.converged[0] != together.converged[1]
    for number, design in enumerate(designs):
        alone = finished(Training([design], [task], recipe, CPU))
        assert alone.converged[0] == together.converged[number]
        assert torch.allclose(alone.nets[0].weights, together.nets[number].weights, atol=1e-6)


@pytest.mark.parametrize(
    "designs",
    [
        grid(SMALL, seeds=2),
        [replace(SMALL, effective_depth=3, decay=1)],  # whole numbers
        [replace(SMALL, scheme="given", steps=(0.1, 0.1, 0.2, 0.2, 0.3, 0.1))],
    ],
)
def test_a_sweep_is_saved_and_loaded(tmp_path: Path, designs: list[Design]) -> None:
    found = sweep(designs, SHORT)
    again = load_sweep(found.save(tmp_path / "kept"))
    assert same(found, again)
    assert again.recipe == SHORT
    assert [run.design for run in again.runs] == designs
    assert again.runs[-1].history.equals(found.runs[-1].history)
    assert torch.equal(again.runs[-1].task.y_test, found.runs[-1].task.y_test)
    assert again.provenance.settings["recipe"]["phases"][0]["epochs"] == 80
    if designs[0].steps is not None:
        assert again.runs[0].net.steps.tolist() == pytest.approx(designs[0].steps, abs=1e-7)
    with pytest.raises(InputError, match="holds a sweep already"):
        found.save(tmp_path / "kept")


def test_precision_is_that_of_the_recipe() -> None:
    single, double = (sweep(SMALL, replace(SHORT, precision=p)).runs[0].net for p in ("float32", "float64"))
    assert torch.equal(single.weights, single.weights.float().double())
    assert not torch.equal(double.weights, double.weights.float().double())
    assert torch.allclose(single.weights, double.weights, atol=1e-2)


def test_your_own_data(tmp_path: Path) -> None:
    x = torch.randn(20, 5, generator=torch.Generator().manual_seed(0))
    design, task = replace(SMALL, teacher=None), own_task(x, x)  # inputs may be the outputs
    found = sweep(design, SHORT, task=task, out=tmp_path / "run")
    assert found.runs[0].task is task
    assert math.isnan(found.runs[0].test_error)  # there is no test data
    assert same(found, load_sweep(tmp_path / "run"))
    assert same(found, sweep(design, SHORT, task=own_task(x, x), out=tmp_path / "run", resume=True))
    with pytest.raises(InputError, match="on other data"):
        sweep(design, SHORT, task=own_task(x, x + 1), out=tmp_path / "run", resume=True)
    with pytest.raises(InputError, match="needs your own data"):
        sweep(design, SHORT, out=tmp_path / "other")
    wide = own_task(torch.randn(9, 20), torch.randn(9, 4))
    with pytest.raises(InputError, match="identity maps need at least 20"):
        sweep(replace(design, maps="identity"), SHORT, task=wide, out=tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_invalid_sweeps(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one network"):
        sweep([], SHORT)
    with pytest.raises(InputError, match="quick, paper, softplus, literal"):
        preset("huge")
    sweep(SMALL, SHORT, out=tmp_path / "run")
    with pytest.raises(InputError, match="holds a sweep already"):
        sweep(SMALL, SHORT, out=tmp_path / "run")
    with pytest.raises(InputError, match="holds another sweep"):
        sweep(replace(SMALL, seed=9), SHORT, out=tmp_path / "run", resume=True)


def test_broken_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"with sweep\.json in it"):
        load_sweep(tmp_path / "nowhere")
    folder = sweep(grid(SMALL, seeds=2), SHORT).save(tmp_path / "run")
    network = folder / "network-001.safetensors"
    content = network.read_bytes()
    network.write_bytes(content[:200])
    with pytest.raises(InputError, match="broken"):
        load_sweep(folder)
    network.unlink()
    with pytest.raises(InputError, match="1 of 2 networks are not trained yet"):
        load_sweep(folder)
    network.write_bytes(content)
    plan = json.loads((folder / "sweep.json").read_text("utf-8"))
    for change, message in (
        ({"version": 99}, "newer fathometer"),
        ({"designs": [{"layers": 3}]}, "its parts do not fit"),
    ):
        (folder / "sweep.json").write_text(json.dumps({**plan, **change}), "utf-8")
        with pytest.raises(InputError, match=message):
            load_sweep(folder)


def test_files_of_another_sweep_are_not_taken(tmp_path: Path) -> None:
    first, second = sweep(SMALL, SHORT), sweep(replace(SMALL, seed=1), SHORT)
    one, two = first.save(tmp_path / "one"), second.save(tmp_path / "two")
    (two / "network-000.safetensors").write_bytes((one / "network-000.safetensors").read_bytes())
    with pytest.raises(InputError, match="a network of another sweep"):
        load_sweep(two)
    (one / "sweep.json").unlink()
    for resume in (False, True):
        with pytest.raises(InputError, match="expected a new or empty folder"):
            sweep(SMALL, SHORT, out=one, resume=resume)


@pytest.mark.parametrize(
    ("file", "facts"),
    [
        ("network", []),
        ("network", {"history": [{"epoch": "soon"}]}),
        ("task", {"rank": 10**400}),
        ("checkpoint", {"members": []}),
        ("checkpoint", {"epoch": 10**9}),
        ("checkpoint", {"phase": -1}),
        ("checkpoint", {"history": []}),
    ],
)
def test_broken_facts_are_errors(tmp_path: Path, file: str, facts: object) -> None:
    (tmp_path / "run").mkdir()
    folder = SweepFolder.create(tmp_path / "run", [SMALL], [_task()], SHORT)
    training = Training([SMALL], folder.tasks, SHORT, CPU)
    training.advance()
    if file == "checkpoint":
        folder.write_checkpoint([0], training.state())
    else:
        folder.write_network(0, sweep(SMALL, SHORT).runs[0])
    path = tmp_path / "run" / f"{file}-000.safetensors"
    tensors, before = read_tensors(path, dict)
    write_tensors(path, tensors, {**before, **facts} if isinstance(facts, dict) else facts)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"broken|not a checkpoint"):
        sweep(SMALL, SHORT, out=tmp_path / "run", resume=True)


@pytest.mark.parametrize("name", ["stack.weights", "0.weights", "method.first.weights"])
def test_broken_tensors_are_errors(name: str) -> None:
    training = Training([SMALL], [_task()], SHORT, CPU)
    training.advance()
    tensors, facts = training.state()
    with pytest.raises(InputError, match="other networks, or is broken"):
        Training([SMALL], [_task()], SHORT, CPU).restore(
            TensorFile({**tensors, name: torch.zeros(1, 1, 1, 1)}, facts)
        )


@pytest.mark.parametrize(
    ("ranks", "seeds"), [([2], 1), pytest.param([2, 3, 4, 5], 3, marks=pytest.mark.slow)]
)
def test_the_quick_preset_finds_the_rank_of_its_teacher(ranks: list[int], seeds: int) -> None:
    quick = preset("quick")
    table = sweep(grid(quick.design, rank=ranks, seeds=seeds), quick.recipe).table
    k = table["rank_of_task"]
    assert len(table) == len(ranks) * seeds
    assert (table["rank"] == k).all()
    assert (table["gap"] >= 10).all()
    assert table["hamiltonian"].between(k - 0.3, k).all()
    assert table["cost_of_identity"].between(k, k + 0.9).all()
    assert (table["crit"] <= 0.08).all()
