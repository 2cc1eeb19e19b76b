from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from fsspec.implementations.local import LocalFileSystem

from fathometer import InputError, load
from fathometer.results.files import StoreError
from fathometer.survey import Failure, Plan, Store, Task, parse_plan, run_survey, tasks_of
from tests.survey.making import plan, plan_text


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


@pytest.mark.parametrize("text", ["{", "", None])
def test_a_broken_file_or_a_folder_is_set_aside_and_measured_again(
    text: str | None, task: Task, tmp_path: Path
) -> None:
    run_survey([task], tmp_path)
    file = tmp_path / f"{task.stem}.json"
    if text is None:
        file.unlink()
        (file / "inner").mkdir(parents=True)
    else:
        file.write_text(text)
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
    failure = Failure.of(ValueError("why\nnot"), task)
    store.write_failure(task, failure)
    assert store.failure(task) == failure


def test_a_file_without_permission_is_not_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (task,) = tasks_of(plan("small"))
    run_survey([task], tmp_path)

    def denied(*_: object, **__: object) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(LocalFileSystem, "cat_file", denied)
    with pytest.raises(StoreError, match="cannot be read"):
        run_survey([task], tmp_path)
    assert not (tmp_path / "broken").exists()


def test_status_of_a_sounding(tmp_path: Path, task: Task) -> None:
    store = Store(tmp_path)
    assert store.status(task) == "to do"
    with Store(tmp_path).claimed(task):
        assert store.status(task) == "in progress"
    assert store.status(task) == "to do"
    store.write_failure(task, Failure.of(ValueError("why"), task))
    assert store.status(task) == "failed"
    other = replace(task, run=replace(task.run, batch_size=1))
    assert store.status(other) == "to do"  # since it will be tried again
    run_survey([task], tmp_path, retry_failed=True)
    assert store.status(task) == "finished"
    (tmp_path / f"{task.stem}.json").write_text("{")
    with pytest.warns(UserWarning, match="broken.*; it will be measured again"):
        assert store.status(task) == "to do"
    assert (tmp_path / f"{task.stem}.json").read_text() == "{"


def test_what_is_not_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="expected a folder for results, got a file"):
        Store(tmp_path / "file")
    with pytest.raises(InputError, match="cannot be opened"):
        Store("nonsense://a/b")
