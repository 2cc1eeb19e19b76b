from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.multiprocessing.spawn import spawn
from torch.utils.data import DataLoader, TensorDataset

from fathometer import InputError, Sounding, measure
from fathometer.results.history import Cost
from fathometer.results.loading import load_history
from fathometer.training import Probe
from fathometer.training.record import Budget
from tests.training.test_record import Clock
from tests.training.training import WATCHED, Noisy, assert_equal, mlp, trained


def each_step(model: nn.Module) -> Probe:
    return Probe(model, WATCHED, every=1, max_overhead=None)


@pytest.mark.parametrize("build", [mlp, Noisy])
@pytest.mark.parametrize("autocast", [False, True])
def test_a_probe_does_not_change_training(build: Callable[[], nn.Module], autocast: bool) -> None:
    without, _ = trained(build, 6, None, autocast=autocast)
    with_one, probe = trained(build, 6, each_step, autocast=autocast)
    assert_equal(with_one, without)
    assert probe is not None
    assert probe.history.steps == tuple(range(7))
    assert probe.history.change()["change"].abs().max() > 0


def restless(x: Tensor, y: Tensor) -> float:
    """A gauge that draws from every generator there is."""
    del x, y
    return float(sum(draw()))


def draw() -> list[float]:
    return [torch.rand(()).item(), np.random.rand(), random.random()]  # noqa: NPY002


class Remembering(nn.Module):
    """Changes its buffers in eval mode, too: one in place, one by another."""

    seen: Tensor
    last: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("last", torch.zeros(6))

    def forward(self, x: Tensor) -> Tensor:
        self.seen += len(x)
        self.last = x[-1]
        return torch.relu(x)


@pytest.mark.parametrize("own", [False, True])
def test_generators_gradients_and_buffers_are_left_alone(own: bool) -> None:
    drawn = []
    for probed in (False, True):
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        model = nn.Sequential(mlp(), nn.Linear(8, 6), memory := Remembering())
        model(WATCHED).sum().backward()
        gradients = [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]
        last, seen = memory.last, memory.seen.clone()
        generator = torch.Generator().manual_seed(3) if own else None  # otherwise the global one
        if probed:
            data = DataLoader(TensorDataset(WATCHED), 8, shuffle=True, generator=generator)
            Probe(model, data, gauges=["affinity", restless], samples=16).step(0)
        drawn.append((draw(), generator and generator.get_state().tolist()))
        after = [weight.grad for weight in model.parameters()]
        assert len(gradients) == 6
        torch.testing.assert_close(after, gradients, rtol=0, atol=0)
        assert memory.last is last
        assert memory.seen == seen
    assert drawn[0] == drawn[1]


def test_a_sounding_is_what_measure_gives() -> None:
    torch.manual_seed(0)
    model = mlp()
    probe = Probe(model, WATCHED, gauges="standard", every=2, max_overhead=None, samples=40, name="small")
    first = probe.step(0)
    expected = measure(model, WATCHED, samples=40, batches=1, gauges="standard")
    assert first is not None
    pd.testing.assert_frame_equal(first.records, expected.records, check_exact=True)
    assert probe.step(1) is None
    with torch.no_grad():
        next(model.parameters()).mul_(3)
    second = probe.step(2)
    expected = measure(model, WATCHED, samples=40, batches=1, gauges="standard")
    history = probe.history
    assert second is history.soundings[1]
    pd.testing.assert_frame_equal(second.records, expected.records, check_exact=True)
    assert history.steps == (0, 2)
    assert repr(history.soundings[0]).startswith("Sounding of small on probe batch: 2 sites, 1 batch, ")


def timed(clock: Clock, a_sounding: float, **options: Any) -> Probe:
    """A real probe whose soundings take as long as we say."""

    def log(step: int, sounding: Sounding) -> None:
        del step, sounding
        clock.now += a_sounding

    probe = Probe(mlp(), WATCHED, log=log, **options)
    probe._budget = Budget(probe._budget.max_share, clock)
    return probe


@pytest.mark.parametrize(("every", "expected"), [("auto", {20}), (8, {16, 24})])
def test_interval_follows_the_bound_and_is_at_least_every(every: Any, expected: set[int]) -> None:
    clock = Clock()
    probe = timed(clock, 2.0, every=every, max_overhead=1 / 11)
    probe.step(0)
    for step in range(1, 301):
        clock.now += 1.0
        probe.step(step)
    probe.finish()
    steps = probe.history.steps
    gaps = [after - before for before, after in pairwise(steps[2:-1])]
    assert set(gaps) == expected
    if every != "auto":
        assert all(step % every == 0 for step in steps[:-1])
    assert steps[0] == 0
    assert steps[-1] == 300
    cost = probe.history.cost
    assert cost == Cost(2.0 * len(steps), 300.0 + 2.0 * len(steps), 1 / 11)
    assert 0.06 < cost.share <= 1 / 11


def test_without_a_bound_every_multiple_is_measured() -> None:
    probe = Probe(mlp(), WATCHED, every=10, max_overhead=None)
    for step in (0, 3, 9, 10, 10, 11, 25, 29, 30):
        probe.step(step)
    assert probe.history.steps == (0, 10, 25, 30)  # 20 went by unseen
    assert probe.finish() is None


def test_metrics_are_kept() -> None:
    probe = Probe(mlp(), WATCHED, every=5, max_overhead=None)
    probe.step(0)
    total = torch.tensor([4.0])
    probe.step(1, loss=total, rate=np.float32(0.5))  # type: ignore[arg-type]
    total += 1
    probe.step(2, loss=torch.tensor(2.0, requires_grad=True), step=7)
    probe.note(2, {"accuracy": 1})
    probe.note(5, {"rate": 0.25})
    assert probe.step(np.int64(5)) is not None  # type: ignore[arg-type]
    metrics = probe.history.metrics
    assert metrics.to_numpy().tolist() == [
        [1, "loss", 4.0],
        [1, "rate", 0.5],
        [2, "loss", 2.0],
        [2, "step", 7.0],
        [2, "accuracy", 1.0],
        [5, "rate", 0.25],
    ]
    assert probe.history.metric("loss").to_dict() == {1: 4.0, 2: 2.0}
    for bad in ("3", torch.ones(2)):
        with pytest.raises(InputError, match="loss: expected a number or a tensor of one element"):
            probe.step(6, loss=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "every: expected a whole number from 1, got 0"),
        ({"max_overhead": None}, "give a number of steps, or a share"),
        ({"max_overhead": 1.0}, "max_overhead: expected a share between 0 and 1"),
        ({"samples": 1}, "samples: expected a whole number from 2"),
        ({"keep_on": "nowhere"}, "keep_on: nowhere is not usable here"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Probe(mlp(), WATCHED, **options)


def test_what_cannot_be_measured_is_refused_at_once() -> None:
    with pytest.raises(InputError, match=r"model: expected a torch\.nn\.Module, got function"):
        Probe(mlp, WATCHED)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="data: expected at least 2 samples"):
        Probe(mlp(), WATCHED[:1])
    probe = Probe(nn.Linear(6, 2), WATCHED)
    with pytest.raises(InputError, match="no site to measure"):
        probe.step(0)
    with pytest.raises(InputError, match="nothing is measured yet"):
        _ = probe.history
    assert Probe(mlp(), WATCHED).finish() is None


class ByName(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = mlp()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


def loose(data: Tensor) -> Iterator[Tensor]:
    yield from data.split(20)


@pytest.mark.parametrize(
    "data",
    [
        lambda x: x,
        lambda x: (x, torch.zeros(48)),
        lambda x: {"x": x, "label": torch.zeros(48)},
        lambda x: [{"x": x[:10]}, {"x": x[10:]}],
        lambda x: DataLoader(TensorDataset(x, torch.zeros(48)), 7),
        loose,
    ],
)
def test_all_kinds_of_data_give_the_same_batch(data: Callable[[Tensor], Any]) -> None:
    torch.manual_seed(0)
    model, inputs = ByName(), WATCHED.clone()
    probe = Probe(model, data(inputs), samples=32, every=1, max_overhead=None)
    inputs.zero_()  # the probe has its own
    for step in range(2):
        sounding = probe.step(step)
        assert sounding is not None
        assert (sounding.records["n"] == 32).all()
        expected = measure(model, WATCHED[:32], samples=32, gauges="affinity")
        assert sounding.signature.to_list() == pytest.approx(expected.signature.to_list(), abs=1e-5)


def test_tokens_are_samples() -> None:
    model = nn.Sequential(nn.Embedding(30, 6), nn.Linear(6, 6), nn.GELU())
    ids = torch.arange(600).reshape(20, 30) % 30
    probe = Probe(model, ids, samples=100, reduction="tokens")
    probe.step(0)
    assert probe.history.soundings[0].records["n"].to_list() == [100]  # the fourth text is cut off
    assert probe.history.soundings[0].provenance.data["probe_inputs"] == 4


def test_a_failed_sounding_is_a_warning_and_training_continues() -> None:
    model = mlp()
    probe = Probe(model, WATCHED, every=1, max_overhead=None)
    probe.step(0)
    good = next(model.parameters()).detach().clone()
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    with pytest.warns(UserWarning, match=r"no sounding at step 1: .*NaN or inf.*history\.missed") as seen:
        assert probe.step(1) is None
    assert probe.step(2) is None  # a second warning would be an error
    assert Path(seen[0].filename) == Path(__file__)
    with torch.no_grad():
        next(model.parameters()).copy_(good)
    assert probe.step(3) is not None
    history = probe.history
    assert history.steps == (0, 3)
    assert [step for step, _ in history.missed] == [1, 2]
    assert "2 missed" in repr(history)
    assert all(module.training for module in model.modules())


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({"gauges": "cka"}, WATCHED, r'gauges was \["affinity"\] in the history and is \["cka"\] now'),
        ({}, WATCHED + 1, "probe_sha256 was"),
    ],
)
def test_a_history_of_other_settings_or_data_is_not_resumed(
    options: dict[str, Any], data: Tensor, message: str
) -> None:
    probe = Probe(mlp(), WATCHED)
    probe.step(0)
    with pytest.raises(InputError, match=f"resume: {message}"):
        Probe(mlp(), data, **options).resume(probe.history)


def test_a_failed_log_is_a_warning_and_training_continues() -> None:
    def full(step: int, sounding: Sounding) -> None:
        del step, sounding
        raise OSError(28, "No space left on device")

    probe = Probe(mlp(), WATCHED, every=1, max_overhead=None, log=full)
    with pytest.warns(UserWarning, match="not logged at step 0: OSError: .*No space left"):
        assert probe.step(0) is not None
    assert probe.step(1) is not None  # a second warning would be an error
    assert [step for step, _ in probe.history.missed] == list(probe.history.steps) == [0, 1]


def test_a_history_continues_after_a_restart(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = mlp()
    probe = Probe(model, WATCHED, every=5, max_overhead=0.9)
    for step in range(13):
        probe.step(step, loss=float(step))
    before = load_history(probe.history.save(tmp_path / "history.json"))
    assert set(before.steps) <= {0, 5, 10}

    again = Probe(model, WATCHED, every=5, max_overhead=None)
    again.resume(before, 11)
    assert again.step(11) is None
    assert again.step(12, loss=-1.0) is None
    assert again.step(15) is not None
    history = again.history
    assert history.steps == (*before.steps, 15)
    assert history.metric("loss").to_dict() == {**{step: float(step) for step in range(12)}, 12: -1.0}
    assert history.cost.seconds > before.cost.seconds
    assert history.cost.total > before.cost.total

    back = Probe(model, WATCHED, every=5, max_overhead=None)
    back.resume(before, 3)
    assert back.history.steps == (0,)
    assert set(back.history.metric("loss").index) == {0, 1, 2, 3}
    with pytest.raises(InputError, match="from 3"):
        back.step(2)


def test_the_network_may_be_wrapped(tmp_path: Path) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        wrap = nn.parallel.DistributedDataParallel
        without, _ = trained(mlp, 3, None, wrap=wrap)
        with_one, probe = trained(mlp, 3, each_step, wrap=wrap)
    finally:
        torch.distributed.destroy_process_group()
    assert_equal(with_one, without)
    assert probe is not None
    assert list(probe.history.signature.columns) == ["1", "4"]
    assert probe.history.soundings[0].provenance.model["name"] == "Sequential"


def process(rank: int, folder: str) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2
    )
    left, probe = trained(mlp, 3, each_step, wrap=nn.parallel.DistributedDataParallel)
    assert probe is not None
    torch.save((left, list(probe.history.steps) if rank == 0 else probe.has_soundings), f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_of_several_processes_one_measures(tmp_path: Path) -> None:
    spawn(process, (str(tmp_path),), nprocs=2)
    (one, steps), (other, measured) = (torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1))
    assert_equal(one, other)
    assert steps == [0, 1, 2, 3]
    assert measured is False
