"""What a survey asks of a Ray cluster, and how it hands out and takes in; with a Ray that is played."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fathometer.results.sounding_file import to_json
from fathometer.survey import RunOptions, Store, run_survey, tasks_of
from fathometer.survey import ray_engine as engine
from fathometer.survey.ray_cluster import resources
from fathometer.survey.run import Ledger
from fathometer.survey.tasks import Task
from tests.survey.making import plan


class Error(Exception):
    pass


class OutOfMemoryError(Error):
    pass


class CrashError(Error):
    pass


class Played:
    """A Ray whose tasks are done once they are waited for, and all at once."""

    def __init__(self, cpus: list[float], gpus: float = 0) -> None:
        self.cpus, self.gpus = cpus, gpus
        self.made, self.waits, self.most, self.asked = 0, 0, 0, list[dict[str, Any]]()
        self.errors: dict[str, list[Exception]] = {}
        self.exceptions = SimpleNamespace(
            RayError=Error,
            WorkerCrashedError=CrashError,
            NodeDiedError=CrashError,
            LocalRayletDiedError=CrashError,
            ObjectLostError=CrashError,
            OutOfMemoryError=OutOfMemoryError,
        )

    def cluster_resources(self) -> dict[str, float]:
        cpus = self.cpus.pop(0) if len(self.cpus) > 1 else self.cpus[0]
        return {"CPU": cpus, "GPU": self.gpus} if cpus else {}

    def remote(self, function: Any) -> Any:
        self.made += 1

        def options(**wanted: Any) -> Any:
            self.asked.append(wanted)
            return SimpleNamespace(remote=partial(partial, function))

        return SimpleNamespace(options=options)

    def wait(self, references: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        del timeout
        self.waits += 1
        self.most = max(self.most, len(references))
        return references[:num_returns], references[num_returns:]

    def get(self, reference: Any) -> Any:
        return reference()

    def cancel(self, reference: Any, force: bool = False) -> None:
        pass


def over(ray: Played, tasks: list[Task], folder: Path) -> Ledger:
    ledger = Ledger(Store(folder), False, lambda _: None)
    engine._Rounds(ray, ledger).over(tasks)
    return ledger


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_WAIT", 0.0)
    monkeypatch.setattr(engine, "_LOOK", 0.0)


@pytest.mark.parametrize(
    ("run", "cluster", "expected"),
    [
        (RunOptions(), 0, (1, 0)),
        (RunOptions(), 4, (1, 1)),
        (RunOptions(device="cpu"), 4, (1, 0)),
        (RunOptions(device="cuda"), 0, (1, 1)),
        (RunOptions(device="cuda", gpus=0.25), 4, (1, 0.25)),
        (RunOptions(gpus=0), 4, (1, 0)),
        (RunOptions(threads=2, workers=3), 0, (5, 0)),
    ],
)
def test_resources(run: RunOptions, cluster: float, expected: tuple[float, float]) -> None:
    found = resources(Played([8], cluster), run)
    assert (found["num_cpus"], found["num_gpus"]) == expected


def test_counting_takes_no_gpu_and_ranges_do(tmp_path: Path) -> None:
    ray = Played([2], gpus=1)
    ledger = over(ray, tasks_of(plan("small", run="range = 1")), tmp_path)
    assert len(ledger.outcome.measured) == 1
    assert [wanted["num_gpus"] for wanted in ray.asked] == [0, 1, 1, 1]


def test_counting_is_done_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def count(task: Task) -> engine.Answer:
        seen.append(task.run.device)
        return engine.Answer(batches=1)

    monkeypatch.setattr(engine, "_count", count)
    engine._work(tasks_of(plan("small"))[0], engine._COUNT, ".")
    assert seen == ["cpu"]


def test_all_that_is_ready_is_taken_and_no_more_handed_out_than_the_cluster_can_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (task,) = tasks_of(plan("small"))
    text = to_json(run_and_load(task, tmp_path / "one"))
    monkeypatch.setattr(engine, "_measure", lambda *_: engine.Answer(text))
    monkeypatch.setattr(engine, "merged", lambda parts, **_: parts[0])
    many = tasks_of(plan("small", run="range = 1", change=("[settings]", "[settings]\nbatches = 200")))
    ray = Played([8])
    ledger = over(ray, many, tmp_path / "many")
    assert len(ledger.outcome.measured) == 1
    assert (ray.made, ray.most, len(ray.asked)) == (1, 16, 200)
    assert ray.waits < 30


def test_a_cluster_that_begins_with_nothing_and_grows(tmp_path: Path) -> None:
    ray = Played([0, 0, 32])
    change = ("weights", f"seeds = {list(range(12))}\nweights")
    ledger = over(ray, tasks_of(plan("small", change=change)), tmp_path)
    assert len(ledger.outcome.measured) == 12
    assert ray.most > 4


@pytest.mark.parametrize(
    ("error", "times", "measured"),
    [
        (CrashError, 3, 1),
        (CrashError, 4, 0),
        (OutOfMemoryError, 3, 1),
        (OutOfMemoryError, 4, 0),
        (Error, 1, 0),
    ],
)
def test_a_death_is_repeated_so_often_and_no_more(
    error: type[Exception], times: int, measured: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray, work, calls = Played([2]), Played.get, list[object]()

    def get(self: Played, reference: Any) -> Any:
        calls.append(reference)
        if len(calls) <= times:
            raise error("dead")
        return work(self, reference)

    monkeypatch.setattr(Played, "get", get)
    ledger = over(ray, tasks_of(plan("small")), tmp_path)
    assert len(ledger.outcome.measured) == measured
    assert all(wanted["max_retries"] == 0 for wanted in ray.asked)  # it is repeated here
    assert len(calls) == (times + 1 if measured else times)


def run_and_load(task: Task, folder: Path) -> Any:
    run_survey([task], folder)
    return Store(folder).sounding(task)
