"""The same values on Ray: two nodes, an object store; a killed worker, node or survey."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fathometer
from fathometer.errors import InputError
from fathometer.results.loading import open_results
from fathometer.results.store import local_copy
from fathometer.survey import Event, Store, run_survey, tasks_of
from fathometer.survey.tasks import measure_task
from tests.survey.making import ROOT, assert_same, plan, plan_text, start
from tests.survey.nets import EIGHT

ray = pytest.importorskip("ray")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
    ),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PASSES = 15  # of one network: 3 batches of 16, each in four pieces of at most 5, and the 12 left over


class Two(NamedTuple):
    """Two nodes: address, file in which a deadly network leaves its marks, the nodes, a bucket of S3."""

    address: str
    mark: Path
    nodes: Any
    bucket: str

    @property
    def log(self) -> Path:
        """Where networks note their forward passes."""
        return self.mark.with_name("log")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, bucket: str) -> Iterator[Two]:
    """Two nodes on this machine, one CPU each, the second with a GPU by name; and an object store."""
    from ray.cluster_utils import Cluster

    mark = tmp_path_factory.mktemp("deadly") / "mark"
    kept = dict(os.environ)
    os.environ.update(
        PYTHONPATH=os.pathsep.join([str(ROOT), kept.get("PYTHONPATH", "")]),
        DEADLY=str(mark),
        RAY_USAGE_STATS_ENABLED="0",
        LOG=str(mark.with_name("log")),
        GATE=str(mark.with_name("gate")),
    )
    nodes: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "num_gpus": 0})
    nodes.add_node(num_cpus=1, num_gpus=1)
    try:
        yield Two(nodes.address, mark, nodes, bucket)
    finally:
        ray.shutdown()
        nodes.shutdown()
        os.environ.clear()
        os.environ.update(kept)


def passes(log: Path) -> Counter[str]:
    """How many forward passes each network noted."""
    return (
        Counter(line.rpartition(" ")[0] for line in log.read_text().splitlines())
        if log.exists()
        else Counter()
    )


def test_two_nodes_give_the_values_of_one_process(cluster: Two, tmp_path: Path) -> None:
    many = plan("small", "other", "moody", "bad", change=("[data]", '[data]\nmore = "random:50"'))
    run_survey(many, tmp_path / "here")
    outcome = run_survey(many, tmp_path / "ray", backend="ray", address=cluster.address)
    assert [len(outcome.measured), len(outcome.failed)] == [6, 2]
    assert "4 channels" in outcome.failed[0][1].message
    assert_same(tmp_path / "here", tmp_path / "ray")
    assert not list((tmp_path / "ray" / "pending").iterdir())
    again = run_survey(many, tmp_path / "ray", backend="ray", address=cluster.address)
    assert [len(again.measured), len(again.kept), len(again.failed)] == [0, 6, 2]


@pytest.mark.parametrize("kind", ["folder", "object store"])
def test_eight_networks_and_a_killed_node(
    kind: str, cluster: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = plan(*EIGHT)
    with monkeypatch.context() as quiet:
        for name in ("LOG", "GATE"):
            quiet.delenv(name)
        run_survey(whole, tmp_path / "here")
    third_log = tmp_path / "log of the third"
    gate = Path(os.environ["GATE"])
    monkeypatch.delenv("GATE")
    monkeypatch.setenv("LOG", str(third_log))
    monkeypatch.setenv("STALL", "3")
    third = cluster.nodes.add_node(num_cpus=1)
    cluster.log.unlink(missing_ok=True)
    gate.touch()  # the first two nodes wait for the death of the third

    def kill() -> None:
        end = time.monotonic() + 120
        while passes(third_log).total() < 3 and time.monotonic() < end:
            time.sleep(0.05)
        cluster.nodes.remove_node(third, allow_graceful=False)
        gate.unlink()

    killer = threading.Thread(target=kill)
    killer.start()
    out = str(tmp_path / "ray") if kind == "folder" else f"{cluster.bucket}/eight"
    outcome = run_survey(whole, out, backend="ray", address=cluster.address)
    killer.join()
    assert [len(outcome.measured), len(outcome.kept), len(outcome.failed)] == [8, 0, 0]
    assert passes(third_log).total() == 3
    assert passes(cluster.log) == dict.fromkeys(EIGHT, PASSES)  # nothing finished was measured twice
    with local_copy(out) as copy:
        assert_same(tmp_path / "here", copy)
    again = run_survey(whole, out, backend="ray", address=cluster.address)
    assert [len(again.measured), len(again.kept), len(again.failed)] == [0, 8, 0]
    assert sorted(fathometer.atlas(out)["model"]) == sorted(f"tests.survey.nets:{name}" for name in EIGHT)
    assert len(open_results(out).soundings) == 8
    page = tmp_path / "atlas.html"
    subprocess.run([sys.executable, "-m", "fathometer", "report", out, "-o", str(page)], check=True)
    assert all(name in page.read_text() for name in EIGHT)


def test_a_killed_worker_is_repeated(cluster: Two, tmp_path: Path) -> None:
    cluster.mark.unlink(missing_ok=True)
    run = run_survey(plan("deadly"), tmp_path / "ray", backend="ray", address=cluster.address)
    assert [len(run.measured), len(run.failed)] == [1, 0]
    assert len(cluster.mark.read_text()) > PASSES
    run_survey(plan("deadly"), tmp_path / "here")  # which does not die any more
    assert_same(tmp_path / "here", tmp_path / "ray")


def test_a_worker_that_always_dies_costs_one_sounding(cluster: Two, tmp_path: Path) -> None:
    some = plan(
        "fatal",
        run='retries = 0\ndevice = "cpu"',
        change=('noise = "random:60"', 'a = "random:16"\nfatal = "random:19"\nb = "random:32"'),
    )
    run = run_survey(some, tmp_path, backend="ray", address=cluster.address)
    assert sorted(task.data_name for task in run.measured) == ["a", "b"]
    ((task, failure),) = run.failed
    assert (task.data_name, failure.kind) == ("fatal", "WorkerCrashedError")


def test_a_gpu_worker_ends_with_its_network(cluster: Two, tmp_path: Path) -> None:
    seeds = plan(
        "by_process", run="gpus = 1", change=("[data]", 'seeds = [0, 1, 2]\n[data]\nmore = "random:50"')
    )
    cluster.log.unlink(missing_ok=True)
    run_survey(seeds, tmp_path, backend="ray", address=cluster.address)
    found = passes(cluster.log)
    assert len(found) == 3  # a fresh process for each network, and one for all data of a network
    assert len(set(found.values())) == 1


def test_more_workers_than_networks_share_a_network(cluster: Two, tmp_path: Path) -> None:
    data = "\n".join(f'data{count} = "random:{count}"' for count in range(61, 66))
    many = plan("by_process", change=("[data]", f"[data]\n{data}"))
    cluster.log.unlink(missing_ok=True)
    outcome = run_survey(many, tmp_path / "ray", backend="ray", address=cluster.address)
    assert [len(outcome.measured), len(outcome.failed)] == [6, 0]
    assert len(passes(cluster.log)) == 2


def test_auto_asks_for_a_gpu_that_the_cluster_can_add(
    connected: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fathometer.survey import RunOptions, ray_engine

    del connected
    assert ray_engine._gpus(ray, RunOptions()) == 1.0  # the second node has one
    assert ray_engine._gpus(ray, RunOptions(device="cpu")) == 0.0
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 1.0})
    assert ray_engine._gpus(ray, RunOptions()) == 0.0
    state = ray._private.state.state
    monkeypatch.setattr(state, "get_max_resources_from_cluster_config", lambda: {"GPU": 8})
    assert ray_engine._gpus(ray, RunOptions()) == 1.0


def test_a_survey_here_and_one_on_ray_share_a_folder(cluster: Two, tmp_path: Path) -> None:
    (task,) = tasks_of(plan("small"))
    store = Store(tmp_path)
    told: list[str] = []

    def on_event(event: Event) -> None:
        told.append(event.state)
        if told.count("elsewhere") == 1:
            store.write_sounding(task, measure_task(task))
            claim.__exit__(None, None, None)

    claim = store.claimed(task)
    assert claim.__enter__()
    outcome = run_survey([task], tmp_path, backend="ray", address=cluster.address, on_event=on_event)
    assert told == ["started", "elsewhere", "kept"]
    assert outcome.kept == [task]


def test_a_killed_survey_is_resumed(cluster: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plan.toml").write_text(plan_text(*EIGHT))
    for name in ("LOG", "GATE"):
        monkeypatch.delenv(name)
    run_survey(tmp_path / "plan.toml", tmp_path / "here")
    cluster.log.unlink(missing_ok=True)
    survey = start(tmp_path, "ray", cluster.address)
    end = time.monotonic() + 120
    while len(list((tmp_path / "ray").glob("*.json"))) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    survey.kill()
    survey.communicate()
    before = len(list((tmp_path / "ray").glob("*.json")))
    outcome = run_survey(tmp_path / "plan.toml", tmp_path / "ray", backend="ray", address=cluster.address)
    assert len(outcome.kept) >= before >= 2
    assert len(outcome.measured) + len(outcome.kept) == 8
    assert_same(tmp_path / "here", tmp_path / "ray")
    assert not list((tmp_path / "ray" / "pending").iterdir())


def test_a_folder_that_workers_do_not_see_is_refused(tmp_path: Path) -> None:
    from fathometer.survey.ray_engine import _measure_network

    report = _measure_network(tasks_of(plan("small")), str(tmp_path / "missing"), False, str(ROOT))
    assert "does not see this folder" in report.store_error


@pytest.fixture
def connected(cluster: Two) -> Iterator[Two]:
    """The two nodes, in use already."""
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        yield cluster
    finally:
        ray.shutdown()


def test_a_cluster_in_use(connected: Two, tmp_path: Path) -> None:
    with pytest.raises(UserWarning, match=r"ray: no node has 3 CPU, 8 GPU.*; waiting for one"):
        run_survey(plan("small", run="gpus = 8\nworkers = 2"), tmp_path, backend="ray")
    with pytest.raises(InputError, match="uses the Ray cluster at"):
        run_survey(plan("small"), tmp_path, backend="ray", address="127.0.0.1:1")
    assert run_survey(plan("small"), tmp_path, backend="ray", address=connected.address).failed == []
    assert ray.is_initialized()


def test_the_environment_may_name_the_cluster(
    cluster: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    used: list[str] = []
    outcome = run_survey(
        plan("small"),
        tmp_path,
        backend="ray",
        on_event=lambda _: used.append(ray.get_runtime_context().gcs_address),
    )
    assert len(outcome.measured) == 1
    assert set(used) == {cluster.address}


def test_no_cluster_answers(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(InputError, match=r"no Ray cluster answers at 127\.0\.0\.1:1"):
        run_survey(plan("small"), tmp_path, backend="ray", address="127.0.0.1:1")
    assert time.monotonic() - begun < 20


def test_a_local_cluster_does_not_grow(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ray: no node has 1 CPU, 8 GPU"):
        run_survey(plan("small", run="gpus = 8"), tmp_path, backend="ray")
    assert not ray.is_initialized()


def test_what_is_killed_for_its_memory_is_not_repeated_for_ever(tmp_path: Path) -> None:
    code = """
import sys
from ray.cluster_utils import Cluster
from fathometer.survey import run_survey
from tests.survey.making import plan
tight = {"memory_usage_threshold": 0.001, "memory_monitor_refresh_ms": 100}
nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": tight})
outcome = run_survey(plan("slow", run="retries = 1"), sys.argv[1], backend="ray", address=nodes.address)
print(len(outcome.measured), *(failure.kind for _, failure in outcome.failed))
nodes.shutdown()
"""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0", "RAY_task_oom_retries": "1"},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert "0 OutOfMemoryError" in done.stdout.splitlines(), done.stderr
