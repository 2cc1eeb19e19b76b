"""Every item of both papers runs, at the scale that takes seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from papers import ITEMS, Item, read_verdict, reproduce
from papers.page import measured

LETTERS = "abc"
AFFINITY = [
    "theorems",
    *(f"figure-2{letter}" for letter in LETTERS),
    "figure-3",
    "figure-4",
    *(f"figure-5{letter}" for letter in "abcd"),
    *(f"figure-{number}" for number in range(6, 17)),
    *(f"table-{number}" for number in (1, 2, 3)),
]
LEAKY = [
    *(f"figure-1{letter}" for letter in LETTERS),
    *(f"figure-2{letter}" for letter in LETTERS),
    "figure-3",
    *(f"proposition-{number}" for number in (1, 2, 3, 5, 9)),
    "theorem-4",
    "lagrangian",
    "integration-range",
    "output-scaling",
    "footnote-1",
]


@pytest.fixture(scope="session")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reproduction")


def test_all_items_of_both_papers_are_listed_in_order() -> None:
    expected = [f"affinity-{name}" for name in AFFINITY] + [f"leaky-{name}" for name in LEAKY]
    assert list(ITEMS) == [*expected, "joined-path", "joined-finding"]


@pytest.mark.parametrize("item", ITEMS.values(), ids=list(ITEMS))
def test_an_item_runs_and_answers_every_claim(item: Item, out: Path) -> None:
    verdict = reproduce(item, "smoke", out=out)
    folder = out / "smoke" / item.name
    assert read_verdict(folder / "verdict.json") == verdict
    assert list(verdict.answers) == list(item.claims)
    assert all(measured(item, name, answer) for name, answer in verdict.answers.items())
    assert verdict.outcome(item) == "not decided"
    assert verdict.figures == ["figure.png"]
    assert list(folder.glob("*.csv"))
    assert len(verdict.notes(item)) == len(item.notes)
