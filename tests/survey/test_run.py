from __future__ import annotations

import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

from fathometer import load, measure
from fathometer.data import open_data
from fathometer.errors import InputError
from fathometer.models import load_model
from fathometer.survey import Event, Store, parse_plan, run_survey, tasks_of
from fathometer.survey.run import check_data
from tests.survey.making import assert_same, plan, plan_text, start


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


SETTINGS = """
[settings.double]
samples = 20
dtype = "float64"
[settings.positions]
samples = 16
reduction = "position"
gauges = ["affinity", "norm"]
[settings.whole]
samples = 12
batches = 2
gauges = "tests.survey.nets:gap"
sites = "relu"
"""


def several(*models: str) -> str:
    """A plan with three settings on two data sets, with two seeds."""
    text = plan_text(*models).replace("[data]", 'seeds = [0, 1]\n[data]\nmore = "random:40"')
    start, end = text.index("[settings]"), text.index("[run]")
    return text[:start] + SETTINGS + text[end:]


def test_a_network_is_loaded_once_and_its_values_are_those_of_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = tmp_path / "loads"
    monkeypatch.setenv("LOADS", str(loads))
    together = run_survey(parse_plan(several("small", "slow")), tmp_path / "together")
    assert len(together.measured) == 2 * 2 * 2 * 3
    assert Counter(loads.read_text().split()) == {"small": 4, "slow": 4}  # for each seed and precision
    for task in together.measured:
        model = load_model(task.member.model, "none", seed=task.seed)
        model.module.to(getattr(torch, task.settings.dtype or "float32"))
        data = open_data(task.data, model.inputs, batch_size=5, seed=task.seed)
        alone = measure(model, data, task.settings.options(task.seed), batch_size=5)
        sounding = load(tmp_path / "together" / f"{task.stem}.json")
        pd.testing.assert_frame_equal(sounding.records, alone.records, check_exact=True)
        assert sounding.sites == alone.sites
        for name in ("checksum", "structure", "dtype"):
            assert sounding.provenance.model[name] == alone.provenance.model[name]


def test_a_call_of_the_plan_runs_networks_with_other_inputs(tmp_path: Path) -> None:
    positions = 'reduction = "position"'  # those that are drawn depend on the name of the site
    called = plan("listed", change=(positions, 'call = "tests.survey.nets:as_list"'))
    (task,) = run_survey(called, tmp_path).measured
    found = load(tmp_path / f"{task.stem}.json")
    (other,) = run_survey(plan("small", change=(positions, "")), tmp_path).measured
    expected = load(tmp_path / f"{other.stem}.json")
    assert found.provenance.settings["call"] == "as_list"
    assert [site.name for site in found.sites] == [f"inner.{site.name}" for site in expected.sites]
    columns = ["affinity", "norm"]
    pd.testing.assert_frame_equal(found.records[columns], expected.records[columns])
    ((_, failure),) = run_survey(plan("listed"), tmp_path).failed
    assert failure.kind == "ForwardError"


def test_settings_on_one_network_do_not_influence_each_other(tmp_path: Path) -> None:
    plan = parse_plan(several("rude"))
    run_survey(plan, tmp_path / "together")
    for task in reversed(tasks_of(plan)):
        run_survey([task], tmp_path / "alone")
    assert_same(tmp_path / "alone", tmp_path / "together")


@pytest.mark.parametrize("kind", ["changing", "unsaved", "counting"])
def test_a_network_that_changes_itself_is_loaded_again(kind: str, tmp_path: Path) -> None:
    both = plan(kind, change=("[data]", '[data]\nmore = "random:40"'))
    with pytest.warns(UserWarning, match=f"nets:{kind}: a forward pass changes .* loaded for every sounding"):
        run_survey(both, tmp_path / "together")
    for task in tasks_of(both):
        run_survey([task], tmp_path / "alone")
    assert_same(tmp_path / "alone", tmp_path / "together")


def test_a_failed_sounding_does_not_change_the_network_for_the_next(tmp_path: Path) -> None:
    two = '[settings.labels]\nsamples = 16\ngauges = "neural_collapse"\n[settings.two]'
    both = plan("changing", change=("[settings]", two))
    outcome = run_survey(both, tmp_path / "together")
    assert [len(outcome.failed), len(outcome.measured)] == [1, 1]
    run_survey(outcome.measured, tmp_path / "alone")
    assert_same(tmp_path / "alone", tmp_path / "together")


def test_a_killed_survey_loses_only_what_is_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three = plan_text("deadly").replace("[data]", '[data]\nmore = "random:40"\nmost = "random:50"')
    (tmp_path / "plan.toml").write_text(three)
    marks, loads = tmp_path / "marks", tmp_path / "loads"
    monkeypatch.setenv("DEADLY", str(marks))
    monkeypatch.setenv("LOADS", str(loads))
    monkeypatch.setenv("DEADLY_PASS", "17")  # the second data: 10 passes for 40 samples, then 4 for a batch
    killed = start(tmp_path, "cut", backend="local")
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert len(list((tmp_path / "cut").glob("*.json"))) == 1
    resumed = run_survey(tmp_path / "plan.toml", tmp_path / "cut")
    assert [len(resumed.measured), len(resumed.kept), len(resumed.failed)] == [2, 1, 0]
    assert loads.read_text().split() == ["deadly", "deadly"]
    before = len(marks.read_text())
    run_survey(tmp_path / "plan.toml", tmp_path / "whole")
    passes = len(marks.read_text()) - before
    assert before == passes + 17 - 10 - 4  # the passes of the batch that was cut short
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
