"""The worker of `fuzz-files` survives what it tries, and mutants can be made again."""

from __future__ import annotations

import os
import time

import pytest
from soak.files import limits
from soak.files.limits import OutOfRangeError, tried
from soak.files.mutations import mutate

from fathometer import InputError


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
