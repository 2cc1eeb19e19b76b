from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import fathometer
from fathometer import InputError, load
from fathometer.survey import Failure, Plan, Store, Task, parse_plan, run_survey, tasks_of
from fathometer.survey.ranges import Range
from fathometer.survey.tasks import measure_task
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
        whole = file.read_text()
        spoilt = whole.replace('"survey": {', text) if "survey" in text else text.replace("GOOD", whole)
        file.write_text(spoilt)
        return file

    return spoilt


SPOILT = [f'"survey": {nonsense}, "x": {{' for nonsense in ("null", '"x"', "[]", "3")]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "other"}', "GOOD{", "\x00\x01", *SPOILT])
def test_a_broken_file_is_set_aside_and_measured_again(
    text: str, spoil: Callable[[str], Path], task: Task, tmp_path: Path
) -> None:
    file = spoil(text)
    with pytest.warns(UserWarning, match="set aside as broken/.* and measured again"):
        outcome = run_survey([task], tmp_path)
    assert outcome.measured == [task]
    assert load(file).provenance.settings["survey"]["address"] == task.address
    assert len(list((tmp_path / "broken").iterdir())) == 1


@pytest.mark.parametrize("place", ["{}.json", "failed/{}.json"])
def test_a_folder_named_like_a_result_is_set_aside(place: str, tmp_path: Path) -> None:
    (task,) = tasks_of(plan("bad" if "failed" in place else "small"))
    (tmp_path / place.format(task.stem) / "inner").mkdir(parents=True)
    with pytest.warns(UserWarning, match="set aside as broken/.*got a folder"):
        outcome = run_survey([task], tmp_path)
    assert len(outcome.measured) + len(outcome.failed) == 1
    assert (tmp_path / place.format(task.stem)).is_file()
    assert [entry.is_dir() for entry in (tmp_path / "broken").iterdir()] == [True]


def test_the_table_leaves_out_what_has_nonsense_for_labels(tmp_path: Path, task: Task) -> None:
    run_survey([task], tmp_path)
    file = tmp_path / f"{task.stem}.json"
    whole = file.read_text()
    for nonsense in ('"survey": "x", "x": {', '"reduction": [1], "x": {'):
        file.write_text(whole.replace(f"{nonsense.partition(':')[0]}: {{", nonsense))
        with pytest.warns(UserWarning, match="left out: .*expected a table"):
            assert len(fathometer.atlas(tmp_path)) == 0


def test_a_sounding_under_a_wrong_name_is_set_aside(tmp_path: Path, task: Task) -> None:
    stranger = tasks_of(plan("other"))[0]
    run_survey([stranger], tmp_path)
    (tmp_path / f"{stranger.stem}.json").rename(tmp_path / f"{task.stem}.json")
    with pytest.warns(UserWarning, match="not the sounding that its name says"):
        assert Store(tmp_path).sounding(task) is None


def test_failures_are_told_and_nonsense_is_none(tmp_path: Path, task: Task) -> None:
    store = Store(tmp_path)
    assert store.failure(task) is None
    store.fail(task, Failure.of(ValueError("why\nnot"), task))
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
    assert store.standing(task) == "finished"
    fsspec.filesystem("memory").pipe_file(f"/survey-of-a-test/{task.stem}.json", b"{")
    with pytest.warns(UserWarning, match="set aside"):
        assert run_survey([task], url).measured == [task]
    failure = Failure.of(ValueError("c"), task)
    store.fail(task, failure)
    assert store.failure(task) == failure


def test_how_far_a_sounding_is(tmp_path: Path, task: Task) -> None:
    store = Store(tmp_path)
    assert store.standing(task) == "to do"
    with Store(tmp_path).claimed(task):
        assert store.standing(task) == "under way"
    assert store.standing(task) == "to do"
    store.fail(task, Failure.of(ValueError("why"), task))
    assert store.standing(task) == "failed"
    other = replace(task, run=replace(task.run, batch_size=1))
    assert store.standing(other) == "to do"  # since it will be tried again
    run_survey([task], tmp_path, retry_failed=True)
    assert store.standing(task) == "finished"
    (tmp_path / f"{task.stem}.json").write_text("{")
    with pytest.warns(UserWarning, match="will be measured again: .*broken"):
        assert store.standing(task) == "to do"
    assert (tmp_path / f"{task.stem}.json").read_text() == "{"


def test_what_is_half_done(tmp_path: Path, task: Task) -> None:
    store = Store(tmp_path)
    assert store.begun([task]) == {}
    assert not list(tmp_path.iterdir())
    measure_task(task, batches=2, journal=store.journal(task))
    assert store.begun([task]) == {task.address: "2 batches"}
    store.keep_part(task, Range(0, 1), "{}")
    assert store.begun([task]) == {task.address: "2 batches and 1 range"}
    store.forget_work(task)
    (tmp_path / "pending" / f"{task.address}.journal").mkdir()
    assert store.begun([task]) == {}


def test_bad_folders(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="expected a folder for results, got a file"):
        Store(tmp_path / "file")
    with pytest.raises(InputError, match="cannot be opened"):
        Store("nonsense://a/b")
