from __future__ import annotations

import json
import re
import warnings
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from fathometer.cli.survey_view import SurveyProgress
from fathometer.survey import Event, Failure, Store, tasks_of
from fathometer.survey.tasks import measure_task
from tests.cli.conftest import Command
from tests.survey.making import plan, plan_text


@pytest.fixture
def survey(command: Command) -> Command:
    def run(*args: str) -> tuple[int, str, str]:
        return command("survey", *args)

    return run


def row(out: str, name: str) -> list[int]:
    """The numbers of a row of the table."""
    (line,) = (line for line in out.splitlines() if f" {name} " in line)
    return [int(word) for word in re.findall(r"\d+", line)]


def test_a_survey_from_plan_to_status(survey: Command, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(plan_text("small", "bad"))
    code, out, _ = survey("status", "plan.toml", "--out", "results")
    assert (code, row(out, "Tiny") == [2, 0, 0, 0, 2]) == (0, True)
    code, out, err = survey("run", "plan.toml", "--out", "results")
    assert code == 1
    assert "1 of 2: tests.survey.nets:small · none · noise: measured in" in err
    assert "2 of 2: tests.survey.nets:bad · none · noise: failed: the network failed on its input" in err
    reason = re.escape("failed: the network failed on its input (RuntimeError: ")
    assert re.search(rf"^{reason}.*\)\n  tests\.survey\.nets:bad · none · noise\n", out)
    assert "results: 1 measured, 0 kept, 1 failed; --retry-failed" in out
    code, out, _ = survey("status", "plan.toml", "--out", "results")
    assert (code, row(out, "Tiny") == [2, 1, 0, 1, 0]) == (0, True)
    _, text, _ = survey("status", "plan.toml", "--out", "results", "--json")
    assert [task["state"] for task in json.loads(text)] == ["finished", "failed"]
    assert re.search(rf"{reason}.*\)\n  tests\.survey\.nets:bad · none · noise\n--retry-failed tries", out)
    small, bad = tasks_of(plan("small", "bad"))
    with Store("results").claimed(bad):  # as another process would
        code, out, _ = survey("status", "plan.toml", "--out", "results")
    assert (code, row(out, "Tiny") == [2, 1, 1, 0, 0]) == (0, True)
    assert out.endswith("in progress: tests.survey.nets:bad · none · noise\n")
    file = tmp_path / "results" / f"{small.stem}.json"
    whole = file.read_text()
    file.write_text(whole[:-9])
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, out, err = survey("status", "plan.toml", "--out", "results")
    assert "it will be measured again" in err
    assert (code, row(out, "Tiny") == [2, 0, 0, 1, 1]) == (0, True)
    file.write_text(whole)
    (tmp_path / "plan.toml").write_text(plan_text("small"))
    code, out, _ = survey("run", "plan.toml", "--out", "results")
    assert (code, out) == (0, "results: 0 measured, 1 kept, 0 failed\n")
    file.unlink()
    measure_task(small, journal=Store("results").journal(small))
    code, out, _ = survey("status", "plan.toml", "--out", "results")
    assert out.endswith("interrupted: tests.survey.nets:small · none · noise: 3 batches finished\n")


def test_a_reason_that_repeats_is_printed_once(survey: Command, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text("seeds = [0, 1, 2]" + plan_text("bad"))
    code, out, _ = survey("run", "plan.toml", "--out", "results")
    assert (code, out.count("failed on its input")) == (1, 1)
    assert "\n  tests.survey.nets:bad · none (3 soundings)\n" in out


def test_results_in_memory_give_a_warning(survey: Command, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(plan_text("small"))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, _, err = survey("run", "plan.toml", "--out", "memory://of-a-command")
    assert (code, "--out memory://of-a-command: is in memory, and lost" in err) == (0, True)


def test_init_writes_the_plan_of_the_paper(survey: Command, tmp_path: Path) -> None:
    (tmp_path / "val").mkdir()
    assert survey("init", "paper.toml", "--imagenet", "val")[:2] == (0, "wrote paper.toml\n")
    assert "torchvision:convnext_large" in (tmp_path / "paper.toml").read_text()
    code, out, _ = survey("status", "paper.toml")
    assert (code, row(out, "all") == [36, 0, 0, 0, 36]) == (0, True)
    (tmp_path / "val").rmdir()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, out, err = survey("status", "paper.toml")
    assert (code, row(out, "all")[-1] == 36, "no such file or folder" in err) == (0, True, True)
    code, _, err = survey("init", "paper.toml")
    assert (code, "paper.toml exists" in err) == (2, True)


def test_bad_requests_write_nothing(survey: Command, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(plan_text("smal"))
    for args, message in (
        (("run", "plan.toml"), "plan.toml, [families.Tiny]: models: "),
        (("run", "no.toml"), "no.toml: cannot be read"),
        (("run", "plan.toml", "--address", "x:1"), "--address: is for a Ray cluster"),
        (("run", "plan.toml", "--backend", "moon"), "'moon' is not one of 'local', 'ray'"),
    ):
        code, out, err = survey(*args)
        assert (code, out) == (2, "")
        assert message in err
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.toml"]


def test_the_live_table() -> None:
    console = Console(width=100, force_terminal=True, file=StringIO())
    first, second, third = tasks_of(plan("small", "other", "bad"))
    view = SurveyProgress([first, second, third], console)
    for event, head in (
        (Event(first, "in progress", fraction=0.25), "0 of 3 soundings, time left not known yet"),
        (Event(first, "measured", seconds=2.0), "1 of 3 soundings, 0:00:"),
        (Event(second, "kept"), "2 of 3 soundings, 0:00:"),
        (
            Event(third, "failed", failure=Failure("bad", "Error", "[red]why\nnot")),
            "3 of 3 soundings, 0:00:00 left",
        ),
    ):
        view.on_event(event)
        with console.capture() as text:
            console.print(view.table())
        assert head in text.get()
    assert "measured in 2.0 s" in text.get()
    assert "failed: [red]why" in text.get()
