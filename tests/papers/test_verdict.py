from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from fathometer.errors import InputError
from papers import Answer, Claim, Verdict, read_verdict

CLAIMS = {"up": Claim("It rises.", "The slope is above 0."), "down": Claim("It falls.", "It is below 0.")}


def verdict(up: bool | None, down: bool | None) -> Verdict:
    answers = {"up": Answer(up, "slope 0.3", {"slope": 0.3}), "down": Answer(down, "slope −2")}
    return Verdict("affinity-figure-0", "Figure 0", "small", CLAIMS, answers, notes=("by the way",))


@pytest.mark.parametrize(
    ("up", "down", "outcome"),
    [
        (True, True, "holds"),
        (True, None, "holds in part"),
        (True, False, "holds in part"),
        (False, None, "does not hold"),
        (None, None, "not decided"),
    ],
)
def test_the_outcome_follows_from_what_could_be_decided(
    up: bool | None, down: bool | None, outcome: str
) -> None:
    assert verdict(up, down).outcome == outcome


def test_a_verdict_comes_back_from_its_file(tmp_path: Path) -> None:
    claims = CLAIMS | {"down": replace(CLAIMS["down"], ours=True)}
    whole = replace(
        verdict(True, False), claims=claims, command="a", device="b", seconds=1.5, commit="c", date="2026"
    )
    whole.save(tmp_path / "verdict.json")
    assert read_verdict(tmp_path / "verdict.json") == whole
    assert json.loads((tmp_path / "verdict.json").read_text("utf-8"))["outcome"] == "holds"


def test_our_own_claims_do_not_count() -> None:
    ours = {name: replace(claim, ours=True) for name, claim in CLAIMS.items()}
    for down in (True, False, None):
        assert replace(verdict(True, down), claims=CLAIMS | {"down": ours["down"]}).outcome == "holds"
    assert replace(verdict(True, True), claims=ours).outcome == "not decided"


def test_infinite_numbers_are_left_out() -> None:
    answer = Answer(True, "infinite", {"cost": math.inf, "slope": 1})
    assert answer.numbers == {"slope": 1.0}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": "another"}, "not a verdict"),
        ({"version": 2}, "unknown format version 2"),
        ({"scale": "huge"}, "damaged.*scale"),
        ({"notes": ["another"]}, "was edited"),
        ({"item": "\ud800"}, "cannot be read"),  # half a character
        (None, "cannot be read"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, change: dict[str, object] | None, words: str) -> None:
    file = tmp_path / "verdict.json"
    verdict(True, True).save(file)
    text = file.read_text("utf-8")
    file.write_text(text[:30] if change is None else json.dumps(json.loads(text) | change), "utf-8")
    with pytest.raises(InputError, match=words):
        read_verdict(file)
