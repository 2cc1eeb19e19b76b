"""A run of an item, the files that it leaves, and the pages that are made of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import pandas as pd
import pytest

from fathometer.errors import InputError
from papers import Claim, Item, RunContext, Simulation, page, read_verdict, reproduce
from papers.item import Numbers
from papers.page import write_pages


def run(context: RunContext) -> float:
    context.table("numbers", pd.DataFrame({"x": [1, 2]}))
    context.facts["folder"] = "a | b"
    context.seeds(smoke=1, small=2, paper=3)
    return context.pick(smoke=1.0, small=2.0, paper=3.0)


def draw(generator: np.random.Generator, present: bool, _: Numbers) -> Numbers:
    return {"x": generator.random() + present}


ONE = Item(
    name="affinity-figure-2a",
    title="A figure",
    claims={
        "one": Claim("It is above 1.", "x > 1.", lambda x: {"x": x}, lambda n: n["x"] > 1, "1 | {x} < 3"),
        "chance": Claim(
            "It is above 1.5.",
            "x > 1.5.",
            lambda x: {"x": x},
            lambda n: n["x"] > 1.5,
            "{x}",
            simulation=Simulation("one more", draw),
        ),
        "sum": Claim("1 + 1 = 2.", "It is.", lambda _: {"x": 2.0}, lambda n: n["x"] == 2, "{x}", "numerical"),
    },
    run=run,
    settings={"small": "less of everything", "paper": "as published"},
    seconds={"small": 2},
    notes=("in {folder}",),
    sources=("cifar10",),
    changes=("the second test",),
)


@pytest.fixture(autouse=True)
def only_one_item(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "ITEMS", {ONE.name: ONE})


def test_a_run_leaves_its_data_and_its_verdict(tmp_path: Path) -> None:
    verdict = reproduce(ONE, out=tmp_path)
    folder = tmp_path / "small" / ONE.name
    assert sorted(path.name for path in folder.iterdir()) == ["numbers.csv", "verdict.json"]
    assert read_verdict(folder / "verdict.json") == verdict
    assert verdict.facts == {"folder": "a | b", "seeds": [0.0, 1.0]}
    assert verdict.command == "python -m papers run affinity-figure-2a --scale small"
    assert verdict.commit
    assert verdict.answers["one"].holds is True
    assert verdict.answers["chance"].power == pytest.approx(0.5, abs=0.05)
    assert verdict.answers["chance"].holds is None
    assert verdict.outcome(ONE) == "holds"
    assert reproduce(ONE, "smoke", out=tmp_path).outcome(ONE) == "not decided"


def test_the_published_setting_needs_what_the_user_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs --cifar10"):
        reproduce(ONE, "paper", out=tmp_path)
    with pytest.raises(InputError, match="expected a scale of smoke, small, paper, got 'imagenet'"):
        reproduce(ONE, "imagenet", out=tmp_path)
    assert not any(tmp_path.iterdir())
    verdict = reproduce(ONE, "paper", out=tmp_path, sources={"cifar10": tmp_path / "my secret folder"})
    assert verdict.command.endswith("--scale paper --cifar10 FOLDER")
    assert "secret" not in (tmp_path / "paper" / ONE.name / "verdict.json").read_text("utf-8")


def test_a_result_takes_the_place_of_an_earlier_one_when_it_is_complete(tmp_path: Path) -> None:
    folder = tmp_path / "small" / ONE.name
    folder.mkdir(parents=True)
    (folder / "old.png").write_bytes(b"of another run")

    def broken(context: RunContext) -> NoReturn:
        run(context)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(replace(ONE, run=broken), out=tmp_path)
    assert [path.name for path in folder.parent.iterdir() if path.name != "shared"] == [ONE.name]
    assert (folder / "old.png").exists()
    reproduce(ONE, out=tmp_path)
    assert not (folder / "old.png").exists()


def test_the_pages_join_words_and_numbers(tmp_path: Path) -> None:
    reproduce(ONE, "smoke", out=tmp_path / "results")
    with pytest.raises(InputError, match="found none"):
        write_pages(tmp_path / "results", tmp_path / "page.md")
    reproduce(ONE, out=tmp_path / "results")
    write_pages(tmp_path / "results", tmp_path / "page.md")
    summary = (tmp_path / "page.md").read_text("utf-8")
    assert "**1 items, 1 verdicts**: holds 1." in summary
    assert "**Claims of the papers**: holds 1, not decided 1." in summary
    assert f"| [A figure](results/{ONE.name}.md) | holds |" in summary
    assert "Stale" not in summary
    own = (tmp_path / "results" / f"{ONE.name}.md").read_text("utf-8")
    assert "Less of everything." in own
    assert r"| It is above 1. | x > 1. | 1 \| 2.0 &lt; 3 | holds |" in own
    assert "at the paper's effect (one more) in " in own
    assert own.index("### Claims of the paper") < own.index("### Verified numerically")
    assert "| 2.0 | verified |" in own
    assert r"- in a \| b" in own
    assert "*Changed after numbers had been seen:* the second test" in own


def test_a_verdict_of_other_tests_is_shown_as_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reproduce(ONE, out=tmp_path)
    changed = replace(ONE, claims={**ONE.claims, "one": replace(ONE.claims["one"], test="another test")})
    monkeypatch.setattr(page, "ITEMS", {ONE.name: changed})
    write_pages(tmp_path, tmp_path / "page.md")
    assert f"**Stale**, to be run again: {ONE.name} (small)." in (tmp_path / "page.md").read_text("utf-8")
    own = (tmp_path / f"{ONE.name}.md").read_text("utf-8")
    assert "have changed since" in own
    assert "another test" not in own
