"""The worker of `fuzz-files` survives what it tries, and mutants can be made again."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fathometer import InputError, Sounding
from soak import files
from soak.files import limits
from soak.files.checks import check_sounding
from soak.files.kinds import RESULTS, Kind, sounding
from soak.files.limits import Finding, OutOfRangeError, tried
from soak.files.mutations import mutate
from soak.gauges.fuzz import by_hypothesis, pair_of


def trial(number: int) -> None:
    if number == 1:
        raise InputError("expected another file")
    if number == 2:
        raise KeyError("sites")
    if number == 3:
        os._exit(11)
    if number == 4:
        bytearray(10 * limits.MEMORY)
    if number == 5:
        time.sleep(5)
    if number == 6:
        raise OutOfRangeError("n below 1")


def test_every_end_of_a_trial_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.3)
    found = list(tried(trial, 8))
    fates = ["loaded", "refused", "crashed", "crashed", "crashed", "crashed", "out of range", "loaded"]
    assert [finding.number for finding in found] == list(range(8))
    assert [finding.fate for finding in found] == fates
    words = [finding.words for finding in found]
    assert "KeyError: 'sites'" in words[2]
    assert "the process ended with 11" in words[3]
    assert "MemoryError" in words[4]
    assert "took more than" in words[5]


@pytest.mark.parametrize("form", ["json", "jsonl", "toml", "bytes"])
def test_a_mutant_is_another_file_and_can_be_made_again(form: str) -> None:
    content = b'a = 1\nb = "x"\n' if form == "toml" else b'{"a": [1, 2.5, "x"], "b": {"c": null}}\n'
    mutants = [mutate(content, form, str(seed)) for seed in range(200)]
    assert mutants == [mutate(content, form, str(seed)) for seed in range(200)]
    assert sum(mutant.content.strip() != content.strip() for mutant in mutants) > 170
    assert all(mutant.words for mutant in mutants)


def test_enough_plans_and_results_are_tried() -> None:
    assert sum(round(kind.share * files._EACH["full"]) for kind in RESULTS) >= 10**4


def test_every_failure_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_crash(kind: Kind, count: int) -> list[Finding]:
        return [Finding(number, "crashed", f"{kind.name}: KeyError") for number in range(count)]

    monkeypatch.setattr(files, "fuzzed", all_crash)
    outcome = files.run("smoke")
    assert len(outcome.failures) == outcome.rows[-1]["crashed"] == outcome.rows[-1]["files"]
    assert int(outcome.rows[-2]["files"]) < int(outcome.rows[-1]["files"])


@pytest.mark.parametrize(
    ("gauge", "value"),
    [("affinity", float("nan")), ("norm", float("inf")), ("stable_rank_y", 7.0), ("entropy_change", 9.0)],
)
def test_a_value_that_cannot_be_is_seen(tmp_path: Path, gauge: str, value: float) -> None:
    whole = sounding()
    odd = Sounding(whole.sites, whole.records.assign(**{gauge: value}), whole.provenance)
    with pytest.raises(OutOfRangeError, match=gauge):
        check_sounding(odd, tmp_path / "s.json")


def test_a_pair_of_hypothesis_can_be_drawn_again() -> None:
    seen: list[tuple[object, object]] = []
    by_hypothesis(lambda x, y, _: seen.append((x.tolist(), y.tolist())), 12)
    x, y = pair_of(7, 12)
    assert (x.tolist(), y.tolist()) == seen[7]
