"""The same values on Ray: one node, two nodes; a worker, a node, the survey itself that is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

from fathometer.errors import InputError
from fathometer.results.sounding_file import to_json
from fathometer.survey import Event, Store, run_survey, tasks_of
from fathometer.survey.ranges import Range
from fathometer.survey.tasks import measure_task
from tests.survey.making import ROOT, assert_same, plan, plan_text, start

ray = pytest.importorskip("ray")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
    ),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Two(NamedTuple):
    """The address of two nodes, the file that a deadly network leaves its marks in, and the nodes."""

    address: str
    mark: Path
    nodes: Any

    @property
    def log(self) -> Path:
        """Where networks note their forward passes."""
        return self.mark.with_name("log")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    """Two nodes on this machine, one CPU each."""
    from ray.cluster_utils import Cluster

    mark = tmp_path_factory.mktemp("deadly") / "mark"
    kept = dict(os.environ)
    path = os.pathsep.join([str(ROOT), kept.get("PYTHONPATH", "")])
    os.environ.update(
        PYTHONPATH=path,
        DEADLY=str(mark),
        RAY_USAGE_STATS_ENABLED="0",
        LOG=str(mark.with_name("log")),
        PACE="0.1",
        GATE=str(mark.with_name("gate")),
    )
    nodes: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    nodes.add_node(num_cpus=1)
    try:
        yield Two(nodes.address, mark, nodes)
    finally:
        ray.shutdown()
        nodes.shutdown()
        os.environ.clear()
        os.environ.update(kept)


def test_two_nodes_give_the_values_of_one_process(cluster: Two, tmp_path: Path) -> None:
    change = ("[data]", '[data]\nother = "random:50"')
    run_survey(plan("small", "other", "moody", "bad", change=change), tmp_path / "here")
    told: list[Event] = []
    split = plan("small", "other", "moody", "bad", run="range = 1", change=change)
    outcome = run_survey(split, tmp_path / "ray", on="ray", address=cluster.address, tell=told.append)
    assert [len(outcome.measured), len(outcome.failed)] == [6, 2]
    assert "4 channels" in outcome.failed[0][1].message
    assert_same(tmp_path / "here", tmp_path / "ray")
    assert not list((tmp_path / "ray" / "pending").iterdir())
    assert {event.share for event in told} >= {1 / 3, 1.0}
    again = run_survey(split, tmp_path / "ray", on="ray", address=cluster.address)
    assert [len(again.measured), len(again.kept), len(again.failed)] == [0, 6, 2]


def test_a_killed_worker_is_repeated(cluster: Two, tmp_path: Path) -> None:
    run = run_survey(plan("deadly", run="range = 1"), tmp_path / "ray", on="ray", address=cluster.address)
    assert [len(run.measured), len(run.failed)] == [1, 0]
    passes = len(cluster.mark.read_text())
    assert passes > 15  # some were done twice, since a worker died
    run_survey(plan("deadly"), tmp_path / "here")  # which does not die any more
    assert_same(tmp_path / "here", tmp_path / "ray")


def test_a_worker_that_always_dies_is_a_failure(cluster: Two, tmp_path: Path) -> None:
    cluster.mark.unlink(missing_ok=True)
    fatal = plan("deadly", "small", run="retries = 0")
    run = run_survey(fatal, tmp_path, on="ray", address=cluster.address)
    assert [len(run.measured), len(run.failed)] == [1, 1]
    assert run.failed[0][1].kind == "WorkerCrashedError"


def test_ranges_that_were_finished_are_not_measured_again(cluster: Two, tmp_path: Path) -> None:
    (task,) = tasks_of(plan("other", run="range = 1", change=("[settings]", "[settings]\nbatches = 3")))
    log = cluster.mark.with_name("log")
    run_survey([task], tmp_path / "here")
    store = Store(tmp_path / "ray")
    for first in (0, 2):
        part = measure_task(task, first_batch=first, batches=1)
        store.keep_part(task, Range(first, 1), to_json(part))
    log.unlink()
    run_survey([task], tmp_path / "ray", on="ray", address=cluster.address)
    assert log.read_text().splitlines() == ["other 4", "other 5", "other 5", "other 2"]  # the second batch
    assert_same(tmp_path / "here", tmp_path / "ray")


def test_unreadable_images_move_what_comes_after_them(cluster: Two, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for number in range(70):
        pixels = generator.integers(256, size=(8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{number:02}.png")
    for number in (3, 30, 31, 65):
        (tmp_path / "photos" / f"{number:02}.png").write_bytes(b"no image")
    change = ("random:60", str(tmp_path / "photos"))
    run_survey(plan("small", change=change), tmp_path / "here")
    outcome = run_survey(
        plan("small", run="range = 1", change=change), tmp_path / "ray", on="ray", address=cluster.address
    )
    assert len(outcome.measured) == 1
    assert_same(tmp_path / "here", tmp_path / "ray")


def test_a_survey_here_and_one_on_ray_share_a_folder(cluster: Two, tmp_path: Path) -> None:
    (task,) = tasks_of(plan("small"))
    store = Store(tmp_path)
    told: list[Event] = []

    def tell(event: Event) -> None:
        told.append(event)
        if event.state == "elsewhere" and len(told) == 1:
            store.folder.write(f"{task.stem}.json", to_json(measure_task(task)))
            claim.__exit__(None, None, None)

    claim = store.claimed(task)
    assert claim.__enter__()
    outcome = run_survey([task], tmp_path, on="ray", address=cluster.address, tell=tell)
    assert [event.state for event in told] == ["elsewhere", "kept"]
    assert outcome.kept == [task]


@pytest.fixture
def connected(cluster: Two) -> Iterator[Two]:
    """The two nodes, in use already."""
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        yield cluster
    finally:
        ray.shutdown()


def test_a_cluster_in_use_may_grow_to_what_no_node_has(connected: Two, tmp_path: Path) -> None:
    del connected
    with pytest.raises(UserWarning, match=r"ray: no node has 3 CPU, 8 GPU.*; waiting for one"):
        run_survey(plan("small", run="gpus = 8\nworkers = 2"), tmp_path, on="ray")


def test_another_cluster_than_the_one_in_use_is_refused(connected: Two, tmp_path: Path) -> None:
    port = connected.address.rpartition(":")[2]
    for other in ("127.0.0.1:1", f"192.0.2.77:{port}", "local"):
        with pytest.raises(InputError, match="uses another Ray cluster already"):
            run_survey(plan("small"), tmp_path, on="ray", address=other)
    for same in (connected.address, f"127.0.0.1:{port}", "auto"):
        assert run_survey(plan("small"), tmp_path, on="ray", address=same).failed == []
    assert ray.is_initialized()


def test_the_environment_may_name_the_cluster(
    cluster: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    used: list[str] = []

    def tell(event: Event) -> None:
        del event
        used.append(ray.get_runtime_context().gcs_address)

    assert len(run_survey(plan("small"), tmp_path, on="ray", tell=tell).measured) == 1
    assert set(used) == {cluster.address}
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(InputError, match=r"RAY_ADDRESS=127\.0\.0\.1:1: no Ray cluster answers there"):
        run_survey(plan("small"), tmp_path, on="ray")


def passes(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_a_killed_node_costs_its_ranges_alone(
    cluster: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = ("random:60", "random:320")  # twenty batches of four passes
    gate = Path(os.environ["GATE"])
    for name in ("LOG", "PACE", "GATE"):
        monkeypatch.delenv(name)
    run_survey(plan("slow", change=change), tmp_path / "here")
    third_log = tmp_path / "log of the third"
    monkeypatch.setenv("LOG", str(third_log))
    monkeypatch.setenv("STALL", "5")  # in its second range
    third = cluster.nodes.add_node(num_cpus=1)
    cluster.log.unlink(missing_ok=True)
    gate.touch()  # the other nodes wait for its death

    def kill() -> None:
        end = time.monotonic() + 120
        while passes(third_log) < 5 and time.monotonic() < end:
            time.sleep(0.05)
        cluster.nodes.remove_node(third, allow_graceful=False)
        gate.unlink()

    killer = threading.Thread(target=kill)
    killer.start()
    split = plan("slow", run="range = 1", change=change)
    outcome = run_survey(split, tmp_path / "ray", on="ray", address=cluster.address)
    killer.join()
    assert [len(outcome.measured), len(outcome.failed)] == [1, 0]
    assert passes(third_log) == 5
    assert passes(cluster.log) == 80 - 4  # its first range was kept, and its second one begun again
    assert_same(tmp_path / "here", tmp_path / "ray")


def test_a_killed_survey_goes_on(cluster: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = plan_text("slow", run="range = 1").replace("random:60", "random:320")
    (tmp_path / "plan.toml").write_text(text)
    for name in ("LOG", "PACE"):
        monkeypatch.delenv(name)
    run_survey(tmp_path / "plan.toml", tmp_path / "here")
    cluster.log.unlink(missing_ok=True)
    survey = start(tmp_path, "ray", cluster.address)
    pending = tmp_path / "ray" / "pending"
    end = time.monotonic() + 120
    while len(list(pending.glob("[!.]*.json"))) < 3 and time.monotonic() < end:
        time.sleep(0.02)
    survey.kill()
    survey.communicate()
    finished = {file.name for file in pending.glob("[!.]*.json")}
    assert 3 <= len(finished) < 20
    (killed,) = {line.split()[1] for line in cluster.log.read_text().splitlines()}
    outcome = run_survey(tmp_path / "plan.toml", tmp_path / "ray", on="ray", address=cluster.address)
    assert [len(outcome.measured), len(outcome.failed)] == [1, 0]
    fresh = [line for line in cluster.log.read_text().splitlines() if line.split()[1] != killed]
    assert len(fresh) == 4 * (20 - len(finished))
    assert_same(tmp_path / "here", tmp_path / "ray")
    assert not list(pending.glob("[!.]*"))


def test_ranges_of_another_network_are_measured_again(cluster: Two, tmp_path: Path) -> None:
    (task,) = tasks_of(plan("other", run="range = 1", change=("[settings]", "[settings]\nbatches = 3")))
    run_survey([task], tmp_path / "here")
    store = Store(tmp_path / "ray")
    stranger = measure_task(replace(task, seed=1), first_batch=0, batches=1)  # other weights
    settings = {**stranger.provenance.settings, "survey": {"address": task.address}}
    stranger = replace(stranger, provenance=replace(stranger.provenance, settings=settings))
    store.keep_part(task, Range(0, 1), to_json(stranger))
    store.keep_part(task, Range(2, 1), to_json(measure_task(task, first_batch=2, batches=1)))
    with pytest.warns(UserWarning, match="set aside as broken/.*it has other model sha256"):
        outcome = run_survey([task], tmp_path / "ray", on="ray", address=cluster.address)
    assert outcome.measured == [task]
    assert_same(tmp_path / "here", tmp_path / "ray")
    assert len(list((tmp_path / "ray" / "broken").iterdir())) == 1


def test_a_factory_that_makes_other_networks_each_time_is_a_failure(cluster: Two, tmp_path: Path) -> None:
    outcome = run_survey(
        plan("restless", "small", run="range = 1"), tmp_path, on="ray", address=cluster.address
    )
    assert len(outcome.measured) == 1
    ((_, failure),) = outcome.failed
    assert failure.kind == "RangesDifferError"
    assert "other model sha256; does its factory make other weights" in failure.message
    assert failure.run["range"] == 1
    assert not list((tmp_path / "pending").iterdir())


def test_what_is_killed_for_its_memory_is_not_repeated_for_ever(tmp_path: Path) -> None:
    code = """
import sys
from ray.cluster_utils import Cluster
from fathometer.survey import run_survey
from tests.survey.making import plan
tight = {"memory_usage_threshold": 0.001, "memory_monitor_refresh_ms": 100}
nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": tight})
outcome = run_survey(plan("slow", run="retries = 1"), sys.argv[1], on="ray", address=nodes.address)
print(len(outcome.measured), *(failure.kind for _, failure in outcome.failed))
nodes.shutdown()
"""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split() == ["0", "OutOfMemoryError"], done.stderr


def test_a_local_cluster_does_not_grow(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ray: no node has 1 CPU, 8 GPU"):
        run_survey(plan("small", run="gpus = 8"), tmp_path, on="ray")
    assert not ray.is_initialized()


def test_no_cluster_there(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(InputError, match="no Ray cluster answers there"):
        run_survey(plan("small"), tmp_path, on="ray", address="127.0.0.1:1")
    assert time.monotonic() - begun < 20
