from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from fathometer.cli import main
from fathometer.cli.survey_view import View
from fathometer.survey import Event, Store, tasks_of
from fathometer.survey.tasks import measure_task
from tests.survey.making import plan, plan_text


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fathometer", "survey", *args])
        with pytest.raises(SystemExit) as stop:
            main()
        told = capsys.readouterr()
        return int(stop.value.code or 0), told.out, told.err

    return run


def row(out: str, name: str) -> list[int]:
    """The numbers of a row of the table."""
    (line,) = (line for line in out.splitlines() if f" {name} " in line)
    return [int(word) for word in re.findall(r"\d+", line)]


def test_a_survey_from_plan_to_status(command: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(plan_text("small", "bad"))
    code, out, _ = command("status", "plan.toml", "--out", "results")
    assert (code, row(out, "Tiny") == [2, 0, 0, 0, 2]) == (0, True)
    code, out, err = command("run", "plan.toml", "--out", "results")
    assert code == 1
    assert "1 of 2: tests.survey.nets:small · none · noise: measured in" in err
    assert "2 of 2: tests.survey.nets:bad · none · noise: failed: the network failed on its input" in err
    reason = re.escape("failed: the network failed on its input (RuntimeError: ")
    assert re.search(rf"^{reason}.*\)\n  tests\.survey\.nets:bad · none · noise\n", out)
    assert "results: 1 measured, 0 kept, 1 failed; --retry-failed" in out
    code, out, _ = command("status", "plan.toml", "--out", "results")
    assert (code, row(out, "Tiny") == [2, 1, 0, 1, 0]) == (0, True)
    assert re.search(rf"{reason}.*\)\n  tests\.survey\.nets:bad · none · noise\n--retry-failed tries", out)
    small, bad = tasks_of(plan("small", "bad"))
    with Store("results").claimed(bad):  # as another process would
        code, out, _ = command("status", "plan.toml", "--out", "results")
    assert (code, row(out, "Tiny") == [2, 1, 1, 0, 0]) == (0, True)
    assert out.endswith("in progress: tests.survey.nets:bad · none · noise\n")
    file = tmp_path / "results" / f"{small.stem}.json"
    whole = file.read_text()
    file.write_text(whole[:-9])
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, out, err = command("status", "plan.toml", "--out", "results")
    assert "it will be measured again" in err
    assert (code, row(out, "Tiny") == [2, 0, 0, 1, 1]) == (0, True)
    file.write_text(whole)
    (tmp_path / "plan.toml").write_text(plan_text("small"))
    code, out, _ = command("run", "plan.toml", "--out", "results")
    assert (code, out) == (0, "results: 0 measured, 1 kept, 0 failed\n")
    file.unlink()
    measure_task(small, journal=Store("results").journal(small))
    code, out, _ = command("status", "plan.toml", "--out", "results")
    assert out.endswith("interrupted: tests.survey.nets:small · none · noise: 3 batches finished\n")


def test_one_reason_is_told_once(command: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text("seeds = [0, 1, 2]" + plan_text("bad"))
    code, out, err = command("run", "plan.toml", "--out", "results")
    assert (code, out.count("failed on its input"), err.count("failed on its input")) == (1, 1, 1)
    assert "\n  tests.survey.nets:bad · none (3 soundings)\n" in out
    assert "noise · seed 2: failed as tests.survey.nets:bad · none · noise\n" in err


def test_memory_is_no_place_for_results(command: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(plan_text("small"))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, _, err = command("run", "plan.toml", "--out", "memory://of-a-command")
    assert (code, "--out memory://of-a-command: is in memory, and lost" in err) == (0, True)


def test_the_plan_of_the_paper(command: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "val").mkdir()
    assert command("init", "paper.toml", "--imagenet", "val")[:2] == (0, "wrote paper.toml\n")
    assert "torchvision:convnext_large" in (tmp_path / "paper.toml").read_text()
    code, out, _ = command("status", "paper.toml")
    assert (code, row(out, "all") == [36, 0, 0, 0, 36]) == (0, True)
    (tmp_path / "val").rmdir()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, out, err = command("status", "paper.toml")
    assert (code, row(out, "all")[-1] == 36, "no such file or folder" in err) == (0, True, True)
    code, _, err = command("init", "paper.toml")
    assert (code, "paper.toml exists" in err) == (2, True)


def test_refusals(command: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(plan_text("smal"))
    for args, message in (
        (("run", "plan.toml"), "plan.toml, [families.Tiny]: models: "),
        (("run", "no.toml"), "no.toml: cannot be read"),
        (("run", "plan.toml", "--address", "x:1"), "--address: is for a Ray cluster"),
        (("run", "plan.toml", "--backend", "moon"), "'moon' is not one of 'local', 'ray'"),
    ):
        code, out, err = command(*args)
        assert (code, out) == (2, "")
        assert message in err
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.toml"]


def test_the_live_table() -> None:
    console = Console(width=100, force_terminal=True, file=StringIO())
    first, second, third = tasks_of(plan("small", "other", "bad"))
    view = View([first, second, third], console)
    for event, head in (
        (Event(first, "in progress", share=0.25), "0 of 3 soundings, time left not known yet"),
        (Event(first, "measured", seconds=2.0), "1 of 3 soundings, 0:00:"),
        (Event(second, "kept"), "2 of 3 soundings, 0:00:"),
        (Event(third, "failed", message="[red]why\nnot"), "3 of 3 soundings, 0:00:00 left"),
    ):
        view.tell(event)
        with console.capture() as text:
            console.print(view.table())
        assert head in text.get()
    assert "measured in 2.0 s" in text.get()
    assert "failed: [red]why" in text.get()


def test_the_live_table_shows_what_tells_soundings_apart() -> None:
    console = Console(width=100, force_terminal=True, file=StringIO())
    for change, shown in (
        (("", ""), []),
        (('weights = "none"', 'weights = "none"\nseeds = [7, 8]'), ["7", "8"]),
    ):
        tasks = tasks_of(plan("small", change=change))
        view = View(tasks, console)
        for task in tasks:
            view.tell(Event(task, "begun"))
        seeds = [column for column in view.table().columns if column.header == "seed"]
        assert [str(cell) for column in seeds for cell in column.cells] == shown


def test_help_shows_a_plan(command: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = command("run", "--help")
    assert code == 0
    for word in ("[families.ResNet]", "[run]", "[facts.", "without", "[settings.NAME]", "docs/survey.md"):
        assert word in out
