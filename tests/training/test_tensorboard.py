from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fathometer import MissingExtraError, measure
from fathometer.training import Probe, TensorBoardLog, WandbLog
from fathometer.training.logs import scalars
from tests.training.training import WATCHED, mlp


def read(folder: Path) -> Any:
    """The events of a folder, by TensorBoard itself."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder))
    found.Reload()
    return found


class Awkward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.relu, self.relu_2 = nn.ReLU(), nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.relu_2(self.relu(self.relu(x) - 0.1) - 0.1))


def test_names_for_every_logger() -> None:
    found = scalars(measure(Awkward(), WATCHED, samples=48, gauges=["affinity", "sparsity"]))
    assert [name for name in found if "sparsity" not in name] == [
        "fathometer/affinity_min",
        "fathometer/affinity_median",
        "fathometer/affinity_max",
        "fathometer/affinity/relu",
        "fathometer/affinity/relu-2",
        "fathometer/affinity/relu_2",
        "fathometer/affinity/tanh",
    ]
    of_sites = [value for name, value in found.items() if name.startswith("fathometer/affinity/")]
    assert found["fathometer/affinity_min"] == min(of_sites)
    other = scalars(measure(mlp(), WATCHED, samples=48, gauges="affinity"), "other")
    assert list(other)[-2:] == ["other/affinity/1", "other/affinity/4"]


def test_names_that_become_the_same_are_numbered() -> None:
    model = nn.Sequential()
    for name in ("α", "β", "-"):
        model.add_module(name, nn.ReLU())
    found = scalars(measure(model, WATCHED, samples=48, gauges="sparsity"))
    names = [name for name in found if name.startswith("fathometer/sparsity_after/")]
    assert names == [f"fathometer/sparsity_after/{name}" for name in ("-", "--2", "--3")]


def test_tensorboard_reads_what_the_probe_wrote(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = mlp()
    with TensorBoardLog(tmp_path / "runs" / "one") as log:
        probe = Probe(model, WATCHED, gauges=["affinity", "cka"], every=4, max_overhead=None, log=log)
        for step in range(0, 9, 4):
            probe.step(step)
            with torch.no_grad():
                next(model.parameters()).mul_(1.5)
            assert len(read(log.folder).Scalars("fathometer/affinity/1")) == step // 4 + 1  # already there
    found, history = read(log.folder), probe.history
    assert set(found.Tags()["scalars"]) == set(scalars(history.soundings[0]))
    for site in ("1", "4"):
        events = found.Scalars(f"fathometer/affinity/{site}")
        assert [event.step for event in events] == [0, 4, 8]
        assert [event.value for event in events] == pytest.approx(history.signature[site].to_list(), rel=1e-6)
    median = [event.value for event in found.Scalars("fathometer/cka_median")]
    assert median == pytest.approx(history.table("cka").median(axis=1).to_list(), rel=1e-6)
    assert found.Tags()["histograms"] == ["fathometer/affinity", "fathometer/cka"]
    last = found.Histograms("fathometer/affinity")[-1]
    assert last.histogram_value.num == 2
    assert last.histogram_value.min == pytest.approx(history.signature.loc[8].min())


def test_values_that_are_not_finite_are_no_histogram(tmp_path: Path) -> None:
    def nothing(x: torch.Tensor, y: torch.Tensor) -> float:
        del x, y
        return float("nan")

    with TensorBoardLog(tmp_path) as log:
        log(0, measure(mlp(), WATCHED, samples=48, gauges=nothing))
    assert read(tmp_path).Tags()["histograms"] == []
    assert read(tmp_path).Scalars("fathometer/nothing_max")[0].value != 0


def test_without_tensorboard_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError, match=r"'fathometer\[tensorboard\]'"):
        TensorBoardLog(tmp_path)


def test_a_run_of_wandb_gets_numbers_and_alerts() -> None:
    class Run:
        def __init__(self) -> None:
            self.rows: list[dict[str, float]] = []
            self.alerts: list[str] = []

        def log(self, values: dict[str, float]) -> None:
            self.rows.append(values)

        def alert(self, title: str, text: str) -> None:
            self.alerts.append(f"{title}: {text}")

    run = Run()
    first = nn.Linear(4, 8)
    nn.init.constant_(first.bias, -100.0)
    net = nn.Sequential(first, nn.ReLU(), nn.Linear(8, 1))
    probe = Probe(net, torch.randn(128, 4), gauges="check", every=1, max_overhead=None, log=WandbLog(run))
    probe.step(0)
    probe.step(1)
    assert [row["fathometer/step"] for row in run.rows] == [0, 1]
    assert run.rows[0]["fathometer/dead_y/1"] == 1
    assert [alert.partition(":")[0] for alert in run.alerts] == ["dead-layer at step 0"]
