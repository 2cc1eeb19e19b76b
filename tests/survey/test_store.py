from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from fsspec.implementations.local import LocalFileSystem

from fathometer import InputError, load
from fathometer.results.store import Store as Files
from fathometer.results.store import StoreError
from fathometer.survey import Failure, Plan, Store, Task, parse_plan, run_survey, tasks_of
from tests.survey.making import ROOT, plan, plan_text
from tests.survey.nets import EIGHT


def address(plan: Plan) -> str:
    (task,) = tasks_of(plan)
    return task.address


@pytest.mark.parametrize(
    "change",
    [
        ("random:60", "random:70"),
        ("samples = 16", "samples = 17"),
        ('"norm"', '"cka"'),
        ("[settings]", "[settings]\nbatches = 2"),
        ('weights = "none"', 'weights = "none"\nseeds = [1]'),
        ("nets:small", "nets:other"),
    ],
)
def test_whatever_decides_the_values_changes_the_address(change: tuple[str, str]) -> None:
    assert address(plan("small")) != address(plan("small", change=change))


@pytest.mark.parametrize(
    "change",
    [
        ("noise =", "other_name ="),
        ("batch_size = 5", "batch_size = 6"),
        ("[families.Tiny]", "[families.Other]"),
        ("threads = 1", "threads = 2\ngpus = 1"),
    ],
)
def test_names_and_speed_do_not_change_the_address(change: tuple[str, str]) -> None:
    assert address(plan("small")) == address(plan("small", change=change))


def test_contents_decide_the_address_and_places_do_not(tmp_path: Path) -> None:
    def found(folder: str, noise: int) -> str:
        place = tmp_path / folder
        (place / "photos" / "cat").mkdir(parents=True, exist_ok=True)
        (place / "photos" / "cat" / "a.png").write_bytes(bytes([noise]))
        torch.save({"w": torch.full((2,), noise)}, place / "w.pt")
        text = plan_text("small").replace('"random:60"', '"photos"').replace('"none"', '"w.pt"')
        return address(parse_plan(text, place))

    assert found("here", 1) == found("there", 1) != found("here", 2)


@pytest.fixture
def task() -> Task:
    return tasks_of(plan("small"))[0]


@pytest.mark.parametrize("text", ["{", '{"schema": "other"}', '"survey": null, "x": {', None])
def test_a_broken_file_or_a_folder_is_set_aside_and_measured_again(
    text: str | None, task: Task, tmp_path: Path
) -> None:
    run_survey([task], tmp_path)
    file = tmp_path / f"{task.stem}.json"
    if text is None:
        file.unlink()
        (file / "inner").mkdir(parents=True)
    else:
        file.write_text(file.read_text().replace('"survey": {', text) if "survey" in text else text)
    with pytest.warns(UserWarning, match="moved to broken/.* and measured again"):
        assert run_survey([task], tmp_path).measured == [task]
    assert load(file).provenance.settings["survey"]["address"] == task.address
    assert len(list((tmp_path / "broken").iterdir())) == 1


def test_a_sounding_under_a_wrong_name_is_set_aside(tmp_path: Path, task: Task) -> None:
    other = tasks_of(plan("other"))[0]
    run_survey([other], tmp_path)
    (tmp_path / f"{other.stem}.json").rename(tmp_path / f"{task.stem}.json")
    with pytest.warns(UserWarning, match="not the sounding that its name says"):
        assert Store(tmp_path).sounding(task) is None


def test_failures_are_kept_and_broken_ones_ignored(tmp_path: Path, task: Task) -> None:
    store = Store(tmp_path)
    assert store.failure(task) is None
    store.fail(task, Failure.of(ValueError("why\nnot"), task))
    failure = store.failure(task)
    assert failure is not None
    assert (failure.kind, failure.message) == ("ValueError", "why\nnot")
    for nonsense in ("[", json.dumps({"schema": "fathometer.failure", "x": 1})):
        (tmp_path / "failed" / f"{task.stem}.json").write_text(nonsense)
        assert store.failure(task) is None


def test_results_at_a_url(task: Task) -> None:
    url = "memory://survey-of-a-test"
    assert run_survey([task], url).measured == [task]
    assert run_survey([task], url).kept == [task]
    store = Store(url)
    assert store.files.names() == [f"{task.stem}.json"]
    assert store.status(task) == "finished"
    assert store.journal(task) is None
    store.files.write(f"{task.stem}.json", b"{")
    with pytest.warns(UserWarning, match="moved to broken/"):
        assert run_survey([task], url).measured == [task]
    failure = Failure.of(ValueError("c"), task)
    store.fail(task, failure)
    assert store.failure(task) == failure


def test_two_surveys_in_one_folder_measure_each_sounding_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    code = "import sys; from tests.survey.making import *; from fathometer.survey import run_survey; "
    code += f"run_survey(plan(*{EIGHT}), sys.argv[1])"
    command = [sys.executable, "-c", code, str(tmp_path / "out")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    for process in [subprocess.Popen(command, env=env) for _ in range(2)]:
        assert process.wait() == 0
    lines = [line.partition(" ")[0] for line in (tmp_path / "log").read_text().splitlines()]
    assert Counter(lines) == dict.fromkeys(EIGHT, 15)
    assert len(list((tmp_path / "out").glob("*.json"))) == 8
    assert not list((tmp_path / "out" / "pending").iterdir())


def test_a_full_disk_ends_the_survey_and_keeps_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = tasks_of(plan("small", "other"))
    write = Files.write

    def full(self: Files, name: str, content: bytes) -> None:
        if name == f"{tasks[1].stem}.json":
            raise StoreError("No space left on device")
        write(self, name, content)

    with monkeypatch.context() as patch:
        patch.setattr(Files, "write", full)
        with pytest.raises(StoreError, match=r"No space left .*; 1 of 2 soundings are safe"):
            run_survey(tasks, tmp_path)
    journal = Store(tmp_path).journal(tasks[1])
    assert journal is not None
    assert journal.exists()  # so that nothing is run again once there is space
    assert [len(run_survey(tasks, tmp_path).kept), len(run_survey(tasks, tmp_path).kept)] == [1, 2]


def test_a_file_without_permission_is_not_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (task,) = tasks_of(plan("small"))
    run_survey([task], tmp_path)

    def denied(*_: object, **__: object) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(LocalFileSystem, "cat_file", denied)
    with pytest.raises(StoreError, match="cannot be read"):
        run_survey([task], tmp_path)
    assert not (tmp_path / "broken").exists()


def test_the_state_of_a_sounding(tmp_path: Path, task: Task) -> None:
    store = Store(tmp_path)
    assert store.status(task) == "to do"
    with Store(tmp_path).claimed(task):
        assert store.status(task) == "in progress"
    assert store.status(task) == "to do"
    store.fail(task, Failure.of(ValueError("why"), task))
    assert store.status(task) == "failed"
    other = replace(task, run=replace(task.run, batch_size=1))
    assert store.status(other) == "to do"  # since it will be tried again
    run_survey([task], tmp_path, retry_failed=True)
    assert store.status(task) == "finished"
    (tmp_path / f"{task.stem}.json").write_text("{")
    with pytest.warns(UserWarning, match="broken.*; it will be measured again"):
        assert store.status(task) == "to do"
    assert (tmp_path / f"{task.stem}.json").read_text() == "{"


def test_bad_folders(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="expected a folder for results, got a file"):
        Store(tmp_path / "file")
    with pytest.raises(InputError, match="cannot be opened"):
        Store("nonsense://a/b")
