from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fathometer.errors import InputError
from fathometer.models import LoadedModel, load_model
from fathometer.survey import Event, Store, parse_plan, run_survey, tasks_of
from fathometer.survey import tasks as survey_tasks
from fathometer.survey.run import check_data
from tests.survey.making import assert_same, plan, plan_text

PASSES = 15  # of one network: 3 batches of 16, each in four pieces of at most 5, and the 12 left over


def test_measured_once_and_kept(tmp_path: Path) -> None:
    told: list[Event] = []
    both = run_survey(plan("small", "other"), tmp_path, on_event=told.append)
    assert [len(both.measured), len(both.kept), len(both.failed)] == [2, 0, 0]
    assert [event.state for event in told if event.state != "in progress"] == ["started", "measured"] * 2
    assert any(event.fraction == 1.0 for event in told)
    times = {file: file.stat().st_mtime_ns for file in tmp_path.glob("*.json")}
    more = run_survey(plan("small", "other", change=("[data]", '[data]\nmore = "random:40"')), tmp_path)
    assert [len(more.measured), len(more.kept)] == [2, 2]
    assert all(file.stat().st_mtime_ns == before for file, before in times.items())


def test_a_failed_model_is_recorded_and_the_rest_goes_on(tmp_path: Path) -> None:
    whole = plan("bad", "small")
    first = run_survey(whole, tmp_path)
    ((task, failure),) = first.failed
    assert len(first.measured) == 1
    assert failure.kind == "ForwardError"
    assert "4 channels" in failure.message
    assert "Traceback" in failure.trace
    again = run_survey(whole, tmp_path)
    assert again.failed == [(task, failure)]
    assert (again.measured, len(again.kept)) == ([], 1)
    retried = run_survey(whole, tmp_path, retry_failed=True)
    assert retried.failed[0][1].message == failure.message
    store = Store(tmp_path)
    (good,) = first.measured
    sounding = store.sounding(good)
    assert sounding is not None
    store.write_sounding(task, sounding)  # once it succeeds, the failure is history
    assert store.failure(task) is None


def test_a_network_is_loaded_once_for_all_its_data_and_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    load = load_model

    def counted(name: str, *args: Any, **options: Any) -> LoadedModel:
        loaded.append(name)
        return load(name, *args, **options)

    monkeypatch.setattr(survey_tasks, "load_model", counted)
    text = plan_text("small").replace("[data]", 'seeds = [0, 1]\n[data]\nmore = "random:40"')
    text = text.replace("[settings]", "[settings.two]\nsamples = 20\n[settings.one]")
    both = run_survey(parse_plan(text), tmp_path / "together")
    assert len(both.measured) == 8
    assert len(loaded) == 2  # for each seed
    for task in tasks_of(parse_plan(text)):
        run_survey([task], tmp_path / "alone")
    assert_same(tmp_path / "alone", tmp_path / "together")


def test_a_network_that_changes_itself_is_loaded_again(tmp_path: Path) -> None:
    both = plan("changing", change=("[data]", '[data]\nmore = "random:40"'))
    with pytest.warns(UserWarning, match="measured again"):
        run_survey(both, tmp_path / "together")
    for task in tasks_of(both):
        run_survey([task], tmp_path / "alone")
    assert_same(tmp_path / "alone", tmp_path / "together")


def test_an_interruption_keeps_finished_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("LOG", str(log))
    run_survey(plan("small"), tmp_path / "whole")
    assert len(log.read_text().splitlines()) == PASSES
    log.unlink()

    def interrupt(event: Event) -> None:
        if event.fraction is not None and event.fraction > 0.7:  # in the third batch
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_survey(plan("small"), tmp_path / "cut", on_event=interrupt)
    before = len(log.read_text().splitlines())
    run_survey(plan("small"), tmp_path / "cut")
    after = len(log.read_text().splitlines()) - before
    assert before < PASSES
    assert after == PASSES - 8  # two batches of four passes are not run again
    assert_same(tmp_path / "whole", tmp_path / "cut")
    assert not list((tmp_path / "cut" / "pending").iterdir())


def test_a_broken_journal_is_set_aside_and_measured_again(tmp_path: Path) -> None:
    (task,) = tasks_of(plan("small"))
    journal = Store(tmp_path).journal(task)
    assert journal is not None
    journal.write_text("nonsense")
    with pytest.warns(UserWarning, match=r"\.journal: moved to broken/.* measured again: .*not the journal"):
        outcome = run_survey([task], tmp_path)
    assert (outcome.measured, outcome.failed) == ([task], [])


def test_a_failure_is_tried_again_with_other_options(tmp_path: Path) -> None:
    first = run_survey(plan("bad"), tmp_path)
    ((_, failure),) = first.failed
    assert failure.run["batch_size"] == 5
    told: list[Event] = []
    run_survey(plan("bad"), tmp_path, on_event=told.append)
    assert [event.state for event in told] == ["failed before"]
    other = plan("bad", change=("batch_size = 5", "batch_size = 3"))
    told.clear()
    run_survey(other, tmp_path, on_event=told.append)
    assert [event.state for event in told if event.state != "in progress"] == ["started", "failed"]
    assert len(list((tmp_path / "failed").iterdir())) == 1


def test_a_device_that_is_not_here_is_no_failure_of_a_network(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(InputError, match=r"^device: cuda is not usable here"):
        run_survey(plan("small", run='device = "cuda"'), tmp_path)
    assert not list(tmp_path.iterdir())


def test_data_that_fill_no_batch_are_refused(tmp_path: Path) -> None:
    for number in range(15):
        (tmp_path / f"{number}.png").touch()
    (tmp_path / "notes.txt").touch()
    out = tmp_path / "out"
    for change, counts in ((("samples = 16", "samples = 61"), "61 samples .*, got 60"),
                           (("random:60", str(tmp_path)), "16 samples .*, got 15")):  # fmt: skip
        with pytest.raises(InputError, match=rf"^\[data\] noise: expected at least {counts}"):
            run_survey(plan("small", change=change), out)
    assert not out.exists()
    for fits in ("samples = 60", 'samples = 61\nleftover = "keep"'):
        assert len(run_survey(plan("small", change=("samples = 16", fits)), out).measured) == 1


def test_tokens_are_not_counted_beforehand() -> None:
    few = plan("small", change=("random:60", "random:3"))
    settings = {"": few.settings[""].changed(reduction="tokens")}
    check_data(tasks_of(replace(few, settings=settings)))
