"""Results folders: here, and two kinds by fsspec."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fathometer.errors import FathometerError
from fathometer.results.files import STALE_AFTER, complete_file
from fathometer.survey import Store, run_survey, tasks_of
from fathometer.survey import remote_folder as remote_module
from fathometer.survey.folders import FolderError, LocalFolder, open_folder
from fathometer.survey.remote_folder import RemoteFolder
from tests.survey.making import assert_same, plan

fsspec = pytest.importorskip("fsspec")


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_module, "_PAUSES", (0.0, 0.0, 0.0))


class Flaky:
    """Fails so many times, then works."""

    def __init__(self, function: Callable[..., Any], failures: int, error: Exception) -> None:
        self.function, self.failures, self.error, self.calls = function, failures, error, 0

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return self.function(*args, **options)


def remote(url: str) -> RemoteFolder:
    folder = open_folder(url)
    assert isinstance(folder, RemoteFolder)
    return folder


def test_a_survey_by_way_of_files_of_fsspec(tmp_path: Path) -> None:
    url = f"local://{tmp_path}/there"
    tasks = tasks_of(plan("small", "bad"))
    first, again = run_survey(tasks, url), run_survey(tasks, url)
    assert [len(first.measured), len(first.failed), len(again.kept), len(again.failed)] == [1, 1, 1, 1]
    run_survey(tasks[:1], tmp_path / "here")
    assert_same(tmp_path / "here", tmp_path / "there")
    assert not list((tmp_path / "there" / "pending").iterdir())
    file = tmp_path / "there" / f"{tasks[0].stem}.json"
    file.write_text("{")
    with pytest.warns(UserWarning, match="set aside"):
        assert len(run_survey(tasks, url).measured) == 1
    file.unlink()
    file.mkdir()
    with pytest.warns(UserWarning, match="got a folder"):
        assert len(run_survey(tasks, url).measured) == 1


@pytest.mark.parametrize("kind", ["memory://folders-of-a-test", "local"])
def test_a_file_is_whole_or_not_there(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = remote(kind if kind != "local" else f"local://{tmp_path}")
    folder.write("a.json", "old")
    broken = Flaky(lambda: None, 99, ConnectionError("the line is dead"))
    for step in ("pipe_file", "mv"):
        if kind != "local" and step == "mv":
            continue  # a put is whole on such a store
        with monkeypatch.context() as patch:
            patch.setattr(type(folder._files), step, broken)
            with pytest.raises(FolderError, match=r"does not work \(ConnectionError: the line is dead\)"):
                folder.write("a.json", "new")
        assert folder.read("a.json") == "old"
    assert folder.names() == ["a.json"]
    assert not (tmp_path / "pending").exists() or not list((tmp_path / "pending").iterdir())
    folder.write("a.json", "new")
    assert folder.read("a.json") == "new"


def test_object_stores_are_written_to_straight(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = remote("memory://straight-of-a-test")
    moved = Flaky(lambda: None, 99, AssertionError("moved"))
    monkeypatch.setattr(type(folder._files), "mv", moved)
    folder.write("a.json", "x")
    assert (folder.read("a.json"), moved.calls) == ("x", 0)


def test_a_line_that_fails_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = remote("memory://flaky-of-a-test")
    files = type(folder._files)
    for name in ("pipe_file", "cat_file", "info", "ls"):
        flaky = Flaky(getattr(folder._files, name), 2, ConnectionResetError("gone"))
        monkeypatch.setattr(files, name, lambda _, *args, flaky=flaky, **options: flaky(*args, **options))
    folder.write("a.json", "x")
    assert (folder.has("a.json"), folder.read("a.json"), folder.names()) == (True, "x", ["a.json"])


def test_a_survey_says_what_is_safe_when_the_folder_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "memory://gone-of-a-test"
    tasks = tasks_of(plan("small", "other"))
    files = fsspec.filesystem("memory")
    put = files.pipe_file
    count = iter(range(99))

    def once(_: object, *args: Any, **options: Any) -> None:
        if next(count) > 1:  # the trial before the work, and one sounding
            raise OSError("no route")
        put(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(type(files), "pipe_file", once)
        with pytest.raises(FathometerError, match=r"OSError: no route\); 1 of 2 soundings are safe there"):
            run_survey(tasks, url)
    assert [len(run_survey(tasks, url).kept), len(run_survey(tasks, url).kept)] == [1, 2]


def test_two_remote_surveys_end_with_one_file(tmp_path: Path) -> None:
    (task,) = tasks_of(plan("small"))
    one, two = Store(f"local://{tmp_path}"), Store(f"local://{tmp_path}")
    with one.claimed(task) as first, two.claimed(task) as second:
        assert (first, second) == (True, True)  # there are no claims, so both are at work
        run_survey([task], f"local://{tmp_path}")
        before = (tmp_path / f"{task.stem}.json").read_text()
        one.folder.remove(f"{task.stem}.json")
        run_survey([task], f"local://{tmp_path}")
    after = json.loads((tmp_path / f"{task.stem}.json").read_text())
    assert after["records"] == json.loads(before)["records"]
    assert [file.name for file in tmp_path.glob("*") if file.is_file()] == [f"{task.stem}.json"]


def test_a_file_url_is_a_folder_here_with_claims(tmp_path: Path) -> None:
    (task,) = tasks_of(plan("small"))
    one, two = Store(f"file://{tmp_path}"), Store(tmp_path)
    with one.claimed(task) as first, two.claimed(task) as second:
        assert (first, second) == (True, False)


def test_old_leftovers_are_removed_by_way_of_fsspec(tmp_path: Path) -> None:
    (tmp_path / "pending").mkdir()
    for age, word in ((0, "new"), (STALE_AFTER + 60, "old")):
        file = tmp_path / "pending" / f"{word}.part"
        file.write_text("half")
        os.utime(file, (time.time() - age,) * 2)
    run_survey(tasks_of(plan("small")), f"local://{tmp_path}")
    assert [file.name for file in (tmp_path / "pending").iterdir()] == ["new.part"]


def test_old_leftovers_are_removed(tmp_path: Path) -> None:
    for age, word in ((0, "new"), (STALE_AFTER + 60, "old")):
        file = tmp_path / f".{word}.0123456789ab.part.json"
        file.write_text("half")
        os.utime(file, (time.time() - age,) * 2)
    run_survey(tasks_of(plan("small")), tmp_path)
    assert [file.name for file in tmp_path.rglob(".*")] == [".new.0123456789ab.part.json"]


def test_a_file_is_on_the_disk_before_the_work_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    flushed, removed = os.fsync, LocalFolder.remove

    def fsync(descriptor: int) -> None:
        steps.append("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        flushed(descriptor)

    def remove(self: LocalFolder, name: str) -> None:
        steps.append(f"forget {name.rpartition('.')[2]}")
        removed(self, name)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(LocalFolder, "remove", remove)
    run_survey(tasks_of(plan("small")), tmp_path)
    assert steps[-3:] == ["file", "folder", "forget journal"]
    steps.clear()
    with complete_file(tmp_path / "figure") as part:
        part.write_text("x")
    assert steps == []


def test_a_disk_that_is_full_ends_the_survey_and_says_what_is_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = tasks_of(plan("small", "other"))
    replace = Path.replace

    def full(self: Path, target: Path) -> Path:
        if target.name == f"{tasks[1].stem}.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(FolderError, match=r"No space left .*; 1 of 2 soundings are safe there"):
            run_survey(tasks, tmp_path)
    journal = Store(tmp_path).journal(tasks[1])
    assert journal is not None
    assert journal.exists()  # so that nothing is run again once there is space
    assert [len(run_survey(tasks, tmp_path).kept), len(run_survey(tasks, tmp_path).kept)] == [1, 2]


def test_what_cannot_be_read_is_not_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (task,) = tasks_of(plan("small"))
    run_survey([task], tmp_path)

    def denied(*_: object, **__: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_text", denied)
    with pytest.raises(FolderError, match="cannot be read"):
        run_survey([task], tmp_path)
    assert not (tmp_path / "broken").exists()
