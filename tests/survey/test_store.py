from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from fathometer import InputError, load
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
        ("threads = 1", "threads = 2\ngpus = 1\nrange = 3"),
    ],
)
def test_names_and_speed_do_not(change: tuple[str, str]) -> None:
    assert address(plan("small")) == address(plan("small", change=change))


def test_contents_decide_not_places(tmp_path: Path) -> None:
    def found(folder: str, noise: int) -> str:
        place = tmp_path / folder
        (place / "photos" / "cat").mkdir(parents=True, exist_ok=True)
        (place / "photos" / "cat" / "a.png").write_bytes(bytes([noise]))
        torch.save({"w": torch.full((2,), noise)}, place / "w.pt")
        text = plan_text("small").replace('"random:60"', '"photos"').replace('"none"', '"w.pt"')
        return address(parse_plan(text, place))

    assert found("here", 1) == found("there", 1) != found("here", 2)


def test_names_cannot_leave_the_folder(tmp_path: Path) -> None:
    text = plan_text("small").replace("noise = ", '"../../../evil/\\u0000" = ')
    (task,) = tasks_of(parse_plan(text))
    assert not set(task.stem) & set("/\\.\0")
    run_survey([task], tmp_path / "out")
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
    assert len(task.stem) < 120


@pytest.fixture
def task() -> Task:
    return tasks_of(plan("small"))[0]


@pytest.fixture
def spoil(tmp_path: Path, task: Task) -> Callable[[str], Path]:
    def spoilt(text: str) -> Path:
        run_survey([task], tmp_path)
        file = tmp_path / f"{task.stem}.json"
        file.write_text(text.replace("GOOD", file.read_text()))
        return file

    return spoilt


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "other"}', "GOOD{", "\x00\x01"])
def test_a_broken_file_is_set_aside_and_measured_again(
    text: str, spoil: Callable[[str], Path], task: Task, tmp_path: Path
) -> None:
    file = spoil(text)
    with pytest.warns(UserWarning, match="set aside as broken/.* and measured again"):
        outcome = run_survey([task], tmp_path)
    assert outcome.measured == [task]
    assert load(file).provenance.settings["survey"]["address"] == task.address
    assert len(list((tmp_path / "broken").iterdir())) == 1


def test_a_sounding_under_a_wrong_name_is_set_aside(tmp_path: Path, task: Task) -> None:
    stranger = tasks_of(plan("other"))[0]
    run_survey([stranger], tmp_path)
    (tmp_path / f"{stranger.stem}.json").rename(tmp_path / f"{task.stem}.json")
    with pytest.warns(UserWarning, match="not the sounding that its name says"):
        assert Store(tmp_path).sounding(task) is None


def test_failures_are_told_and_nonsense_is_none(tmp_path: Path, task: Task) -> None:
    store = Store(tmp_path)
    assert store.failure(task) is None
    store.fail(task, Failure.of(ValueError("why\nnot"), task.title))
    failure = store.failure(task)
    assert failure is not None
    assert (failure.kind, failure.message) == ("ValueError", "why\nnot")
    for nonsense in ("", "[", "[]", "{}", json.dumps({"schema": "fathometer.failure", "x": 1})):
        (tmp_path / "failed" / f"{task.stem}.json").write_text(nonsense)
        assert store.failure(task) is None


def test_a_claim_is_held_by_one(tmp_path: Path, task: Task) -> None:
    one, two = Store(tmp_path), Store(tmp_path)
    for _ in range(2):
        with one.claimed(task) as first, two.claimed(task) as second:
            assert (first, second) == (True, False)
    with two.claimed(task) as later:
        assert later
    assert not list((tmp_path / "pending").iterdir())


def test_a_folder_by_fsspec(task: Task) -> None:
    fsspec = pytest.importorskip("fsspec")
    url = "memory://survey-of-a-test"
    assert run_survey([task], url).measured == [task]
    assert run_survey([task], url).kept == [task]
    store = Store(url)
    assert [name for name, _ in store.soundings()] == [f"{task.stem}.json"]
    assert store.has(task)
    fsspec.filesystem("memory").pipe_file(f"/survey-of-a-test/{task.stem}.json", b"{")
    with pytest.warns(UserWarning, match="set aside"):
        assert run_survey([task], url).measured == [task]
    store.fail(task, Failure("a", "b", "c"))
    assert store.failure(task) == Failure("a", "b", "c")


def test_bad_folders(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="expected a folder for results, got a file"):
        Store(tmp_path / "file")
    with pytest.raises(InputError, match="cannot be opened"):
        Store("nonsense://a/b")
