"""The same values on Ray: one node, two nodes, a worker that is killed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

from fathometer.errors import InputError
from fathometer.sounding_file import to_json
from fathometer.survey import Event, Store, run_survey, tasks_of
from fathometer.survey.ranges import Range
from fathometer.survey.tasks import measure_task
from tests.survey.making import ROOT, assert_same, plan

ray = pytest.importorskip("ray")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
    ),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Two(NamedTuple):
    """The address of two nodes, and the file that a deadly network leaves its marks in."""

    address: str
    mark: Path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    """Two nodes on this machine, one CPU each."""
    from ray.cluster_utils import Cluster

    mark = tmp_path_factory.mktemp("deadly") / "mark"
    kept = dict(os.environ)
    path = os.pathsep.join([str(ROOT), kept.get("PYTHONPATH", "")])
    os.environ.update(
        PYTHONPATH=path, DEADLY=str(mark), RAY_USAGE_STATS_ENABLED="0", LOG=str(mark.with_name("log"))
    )
    nodes: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    nodes.add_node(num_cpus=1)
    try:
        yield Two(nodes.address, mark)
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


def test_what_no_node_has_is_told(cluster: Two, tmp_path: Path) -> None:
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        with pytest.raises(InputError, match="ray: no node has 1 CPU, 8 GPU"):
            run_survey(plan("small", run="gpus = 8"), tmp_path, on="ray")
    finally:
        ray.shutdown()


def test_no_cluster_there(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(InputError, match="no Ray cluster answers there"):
        run_survey(plan("small"), tmp_path, on="ray", address="127.0.0.1:1")
    assert time.monotonic() - begun < 20
