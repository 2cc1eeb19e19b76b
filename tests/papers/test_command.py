from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

from fathometer.errors import InputError
from papers import ITEMS
from papers import __main__ as command

ITEM = "affinity-figure-2c"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")


def run(*args: str) -> str:
    result = CliRunner().invoke(command.app, list(args), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_list_names_every_item_or_those_of_a_pattern() -> None:
    output = run("list")
    assert all(name in output for name in ITEMS)
    assert not list(Path().iterdir())
    output = run("list", "affinity-figure-2?")
    assert ITEM in output
    assert "affinity-figure-6" not in output


def test_an_interrupted_item_can_be_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(_: object) -> NoReturn:
        raise KeyboardInterrupt

    item = replace(ITEMS[ITEM], run=stopped)
    monkeypatch.setattr(command, "chosen_items", lambda _: [item])
    result = CliRunner().invoke(command.app, ["run", ITEM])
    assert result.exit_code == 130
    assert "Run the same command again to resume" in result.output


def test_a_finished_item_is_shown_and_not_run_again() -> None:
    output = run("run", ITEM, "--scale", "smoke")
    assert output.index("fall strictly") < output.index(f"{ITEM}: ")  # the test before, the verdict after
    assert "a smoke run decides nothing" in output
    file = Path("reproduction/smoke", ITEM, "verdict.json")
    before = file.stat().st_mtime_ns
    assert "--force runs it again" in run("run", ITEM, "--scale", "smoke")
    assert file.stat().st_mtime_ns == before
    run("run", ITEM, "--scale", "smoke", "--force")
    assert file.stat().st_mtime_ns > before


def test_a_finished_item_is_run_again_if_its_tests_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    run("run", ITEM, "--scale", "smoke")
    item = ITEMS[ITEM]
    claims = {name: replace(claim, test="another test") for name, claim in item.claims.items()}
    monkeypatch.setattr(command, "chosen_items", lambda _: [replace(item, claims=claims)])
    assert "--force runs it again" not in run("run", ITEM, "--scale", "smoke")


def test_pages_can_be_written_without_running_anything() -> None:
    run("run", ITEM, "--out", "results")
    assert "wrote page.md" in run("page", "page.md", "--out", "results")
    assert f"results/{ITEM}.md" in Path("page.md").read_text("utf-8")
    assert f"small/{ITEM}/figure.png" in Path("results", f"{ITEM}.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["run", "figure-99"], "expected an item"),
        (["run", "affinity-figure-8", "--scale", "paper"], "needs --cifar10"),
        (["run", ITEM, "--scale", "imagenet"], "expected a scale of smoke, small"),
        (["run", ITEM, "--cifar10", "nowhere"], "--cifar10 nowhere: no such file"),
        (["run", ITEM, "--device", "cuda:77"], "not usable here"),
        (["page", "page.md"], "found none"),
    ],
)
def test_invalid_arguments_are_refused_before_any_work(args: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(*args)
    assert not list(Path().iterdir())


def test_items_without_their_data_are_named_and_those_without_the_scale_are_left_out() -> None:
    names = [ITEM, "affinity-figure-8", "affinity-figure-13"]
    result = CliRunner().invoke(command.app, ["run", *names, "--scale", "paper"])
    assert result.exit_code == 1
    assert "2 of 2 items could not be run" in result.output
    assert "affinity-figure-8: affinity-figure-8 at scale paper needs --cifar10" in result.output
    assert ITEM not in result.output
