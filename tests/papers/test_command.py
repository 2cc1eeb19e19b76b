from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
import typer
from typer.testing import CliRunner

from fathometer.errors import InputError
from papers import ITEMS
from papers.__main__ import reproduce

APP = typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False)
APP.command()(reproduce)
ITEM = "affinity-figure-2c"
MODULE = importlib.import_module("papers.__main__")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")


def run(*args: str) -> str:
    result = CliRunner().invoke(APP, list(args), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("word", ["list", "LIST"])
def test_the_list_names_every_item(word: str) -> None:
    output = run(word)
    assert all(name in output for name in ITEMS)
    assert not list(Path().iterdir())


def test_the_list_takes_patterns() -> None:
    output = run("list", "leaky-*")
    assert "leaky-theorem-4" in output
    assert "affinity-" not in output


def test_an_item_made_for_a_gpu_says_so_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    item = replace(ITEMS[ITEM], device="cuda")
    monkeypatch.setattr(MODULE, "chosen_items", lambda _: [item])
    with pytest.warns(UserWarning, match="made for a GPU"):
        run(ITEM, "--scale", "paper")


def test_an_interrupted_item_can_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(_: object) -> NoReturn:
        raise KeyboardInterrupt

    item = replace(ITEMS[ITEM], run=stopped)
    monkeypatch.setattr(MODULE, "chosen_items", lambda _: [item])
    result = CliRunner().invoke(APP, [ITEM])
    assert result.exit_code == 130
    assert "the same command goes on" in result.output


def test_an_item_says_its_test_before_and_its_verdict_after() -> None:
    output = run(ITEM, "--scale", "smoke")
    assert output.index("fall strictly") < output.index(f"{ITEM}: ")
    assert "decides nothing" in output
    assert Path("reproduction/smoke", ITEM, "verdict.json").exists()


def test_what_is_there_is_shown_and_not_run_again() -> None:
    run(ITEM, "--scale", "smoke")
    file = Path("reproduction/smoke", ITEM, "verdict.json")
    before = file.stat().st_mtime_ns
    assert "it was there" in run(ITEM, "--scale", "smoke")
    assert file.stat().st_mtime_ns == before
    run(ITEM, "--scale", "smoke", "--force")
    assert file.stat().st_mtime_ns > before


def test_a_page_can_be_written_without_running_anything() -> None:
    run(ITEM, "--out", "results")
    output = run("--out", "results", "--page", "page.md")
    assert "wrote page.md" in output
    page = Path("page.md").read_text("utf-8")
    assert f"results/small/{ITEM}/figure.png" in page


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "expected items"),
        (["figure-99"], "expected an item"),
        (["affinity-figure-8", "--scale", "paper"], "needs --cifar10"),
        ([ITEM, "--cifar10", "nowhere"], "--cifar10 nowhere: there is no such"),
        ([ITEM, "--device", "cuda:77"], "not usable here"),
        (["--page", "page.md"], "found none"),
    ],
)
def test_what_cannot_be_done_is_said_before_any_work(args: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(*args)
    assert not list(Path().iterdir())


def test_of_several_items_those_that_lack_data_are_named_and_the_others_run() -> None:
    result = CliRunner().invoke(APP, ["affinity-figure-2c", "affinity-figure-8", "--scale", "paper"])
    output = result.output
    assert result.exit_code == 1
    assert "1 of 2 items could not be run" in output
    assert "affinity-figure-8: not run, affinity-figure-8 at scale paper needs --cifar10" in output
    assert ITEMS["affinity-figure-8"].title not in output  # it is not announced
    assert Path("reproduction/paper/affinity-figure-8/verdict.json").exists()
    assert f"{ITEM}: holds" in output
