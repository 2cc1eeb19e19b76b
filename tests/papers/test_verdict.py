"""Verdicts: what the answers decide, and that nobody edits them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fathometer.errors import InputError
from papers import ITEMS, Claim, Item, NotDecided, Verdict, read_verdict
from papers.intervals import interval_numbers, interval_simulation
from papers.verdict import VERSION, Answer, answer, decide

RECORDS = sorted((Path(__file__).parents[2] / "docs" / "reproduction").rglob("verdict.json"))

UP = Claim(
    "It rises.", "The slope is above 0.", lambda slope: {"slope": slope}, lambda n: n["slope"] > 0, "{slope}"
)
ITEM = Item(
    name="affinity-figure-0",
    title="Figure 0",
    claims={"up": UP, "down": replace(UP, words="It falls.", holds=lambda n: n["slope"] < 0)},
    run=lambda _: 1.0,
    settings={"small": "less"},
    seconds={},
    notes=("measured on {data}", "with {unknown}"),
)


def verdict(up: bool | None, down: bool | None, scale: Any = "small") -> Verdict:
    return Verdict(
        item=ITEM.name,
        fingerprint=ITEM.fingerprint,
        scale=scale,
        answers={
            "up": Answer(up, {"slope": 0.3, "all": [1.0, 2.0]}),
            "down": Answer(down, missing="a reason"),
        },
        facts={"data": "digits"},
        figures=["figure.png"],
        command="python -m papers run",
        commit="c",
        machine="m",
        date="2026-01-01",
        seconds=1.5,
        versions={"torch": "2"},
    )


@pytest.mark.parametrize(
    ("up", "down", "outcome"),
    [
        (True, True, "holds"),
        (True, None, "holds"),
        (True, False, "holds in part"),
        (False, None, "does not hold"),
        (None, None, "not decided"),
    ],
)
def test_the_outcome_follows_from_what_could_be_decided(
    up: bool | None, down: bool | None, outcome: str
) -> None:
    assert verdict(up, down).outcome(ITEM) == outcome
    assert verdict(up, down, "smoke").outcome(ITEM) == "not decided"


def of_kind(**kinds: Any) -> Item:
    return replace(ITEM, claims={name: replace(ITEM.claims[name], kind=kind) for name, kind in kinds.items()})


def test_only_claims_of_the_paper_count() -> None:
    for kind in ("ours", "numerical"):
        assert verdict(True, False).outcome(of_kind(up="paper", down=kind)) == "holds"
    assert verdict(True, True).outcome(of_kind(up="ours", down="ours")) == "not decided"
    numerical = of_kind(up="numerical", down="numerical")
    assert verdict(True, True).outcome(numerical) == "verified numerically"
    assert verdict(True, False).outcome(numerical) == "does not hold"


def test_a_verdict_comes_back_from_its_file(tmp_path: Path) -> None:
    verdict(True, None).save(tmp_path / "verdict.json")
    assert read_verdict(tmp_path / "verdict.json") == verdict(True, None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": "another"}, "not a verdict"),
        ({"version": 1}, "unknown format version 1"),
        ({"seconds": 2.0}, "was edited"),
        ({"answers": {"up": {"holds": False}}}, "was edited"),
        ({"item": "\ud800"}, "cannot be read"),  # half a character
        (None, "cannot be read"),
    ],
)
def test_a_damaged_or_edited_file_is_refused(
    tmp_path: Path, change: dict[str, object] | None, words: str
) -> None:
    file = tmp_path / "verdict.json"
    verdict(True, True).save(file)
    text = file.read_text("utf-8")
    file.write_text(text[:30] if change is None else json.dumps(json.loads(text) | change), "utf-8")
    with pytest.raises(InputError, match=words):
        read_verdict(file)


def test_a_verdict_on_other_tests_is_stale() -> None:
    changed = replace(ITEM, claims={**ITEM.claims, "up": replace(UP, test="The slope is above 1.")})
    assert not verdict(True, True).is_stale(ITEM)
    assert not verdict(True, True).is_stale(replace(ITEM, title="other words", notes=()))
    assert verdict(True, True).is_stale(changed)
    assert verdict(True, True).is_stale(of_kind(up="ours", down="paper"))


def test_notes_are_filled_with_the_facts_and_left_out_without() -> None:
    assert verdict(True, True).notes(ITEM) == ["measured on digits"]


def test_what_cannot_be_measured_is_not_decided() -> None:
    def lacking(_: object) -> Any:
        raise NotDecided("needs more networks")

    assert answer(replace(UP, measure=lacking), 1.0, 10) == Answer(None, missing="needs more networks")
    found = answer(UP, math.nan, 10)
    assert (found.holds, found.missing) == (None, "slope could not be computed")
    assert answer(UP, math.inf, 10).numbers == {"slope": 1e300}  # JSON has no infinity
    assert answer(UP, 1 / 3, 10) == Answer(True, {"slope": 0.333333})


def by_interval(effect: float) -> Claim:
    return Claim(
        "It rises.",
        "The interval lies above 0.",
        interval_numbers,
        lambda n: n["low"] > 0,
        "{mean}",
        simulation=interval_simulation("a rise", effect, spread=1.0),
    )


def test_a_test_with_little_power_decides_nothing() -> None:
    values = [1.0, 1.1, 0.9]  # a clear rise
    weak, strong = (answer(by_interval(effect), values, 500) for effect in (1.0, 10.0))
    assert weak.power is not None
    assert weak.power < 0.8
    assert weak.holds is None
    assert strong.power == 1
    assert strong.holds is True
    assert strong.size is not None
    assert strong.size == pytest.approx(0.025, abs=0.02)


@pytest.mark.parametrize("file", RECORDS, ids=lambda file: "-".join(file.parts[-3:-1]))
def test_a_committed_outcome_follows_from_its_numbers(file: Path) -> None:
    if json.loads(file.read_text("utf-8"))["version"] != VERSION:
        pytest.skip("a record of an earlier format")
    found = read_verdict(file)
    item = ITEMS[found.item]
    if found.is_stale(item):
        pytest.skip("its tests have changed since")
    for name, claim in item.claims.items():
        kept = found.answers[name]
        if kept.missing:
            assert kept.holds is None
        else:
            assert decide(claim, kept.numbers, kept.power) is kept.holds, name
            assert claim.sentence(kept.numbers)
            assert (kept.power is None) == (claim.simulation is None)
