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
    output = run("list", "leaky-*")
    assert "leaky-theorem-4" in output
    assert "affinity-" not in output


def test_an_item_for_a_gpu_warns_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    item = replace(ITEMS[ITEM], device="cuda")
    monkeypatch.setattr(command, "chosen_items", lambda _: [item])
    with pytest.warns(UserWarning, match="made for a GPU"):
        run("run", ITEM, "--scale", "paper")


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
    file = Path("reproduction/smoke", ITEM, "verdict.json")
    before = file.stat().st_mtime_ns
    assert "finished before" in run("run", ITEM, "--scale", "smoke")
    assert file.stat().st_mtime_ns == before
    run("run", ITEM, "--scale", "smoke", "--force")
    assert file.stat().st_mtime_ns > before


def test_a_page_can_be_written_without_running_anything() -> None:
    run("run", ITEM, "--out", "results")
    output = run("page", "page.md", "--out", "results")
    assert "wrote page.md" in output
    page = Path("page.md").read_text("utf-8")
    assert f"results/small/{ITEM}/figure.png" in page


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["run", "figure-99"], "expected an item"),
        (["run", "affinity-figure-8", "--scale", "paper"], "needs --cifar10"),
        (["run", ITEM, "--cifar10", "nowhere"], "--cifar10 nowhere: no such file"),
        (["run", ITEM, "--device", "cuda:77"], "not usable here"),
        (["page", "page.md"], "found none"),
    ],
)
def test_invalid_arguments_are_refused_before_any_work(args: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(*args)
    assert not list(Path().iterdir())


def test_items_without_their_data_are_named_and_the_others_run() -> None:
    result = CliRunner().invoke(
        command.app, ["run", "affinity-figure-2c", "affinity-figure-8", "--scale", "paper"]
    )
    output = result.output
    assert result.exit_code == 1
    assert "1 of 2 items could not be run" in output
    assert "affinity-figure-8: not run, affinity-figure-8 at scale paper needs --cifar10" in output
    assert ITEMS["affinity-figure-8"].title not in output  # it is not announced
    assert Path("reproduction/paper/affinity-figure-8/verdict.json").exists()
    assert f"{ITEM}: holds" in output
