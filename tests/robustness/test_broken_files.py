"""Broken files.

A real file of every kind that is read is changed in one place (bits, bytes, chunks; in JSON, TOML and
safetensors also values, keys and nesting) and read. It must be refused with a `FathometerError`, or give a
result that can be shown, saved and loaded again. A file that fathometer wrote is also cut short, at every
byte of its first 400 and at 100 others. It must be refused then; a journal and the files of a survey may
instead be completed to the whole result.
"""

from __future__ import annotations

import random
import shutil
import warnings
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from benchmarks.records import Row
from fathometer.errors import FathometerError
from tests.robustness.files import INPUTS, RESULTS, Kind
from tests.robustness.mutations import mutate


class _Trial:
    """A folder with the real file, copied for each trial."""

    def __init__(self, kind: Kind, folder: Path) -> None:
        self._read, self._real, self._scratch = kind.read, folder / "real", folder / "scratch"
        self._real.mkdir()
        kind.make(self._real)
        (found,) = self._real.glob(kind.file)
        self._file = found.relative_to(self._real)
        self.content = found.read_bytes()
        self.whole = self.read(self.content)

    def read(self, content: bytes) -> object:
        shutil.rmtree(self._scratch, ignore_errors=True)
        shutil.copytree(self._real, self._scratch)
        (self._scratch / self._file).write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a broken file gives many
            return self._read(self._scratch)


@pytest.mark.parametrize("kind", [*RESULTS, *INPUTS], ids=lambda kind: kind.name)
def test_a_file_changed_in_one_place(kind: Kind, full: bool, row: Row, tmp_path: Path) -> None:
    trial = _Trial(kind, tmp_path)
    counts = Counter[str]()

    @settings(
        max_examples=300 if full else 5,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(draw=st.randoms(use_true_random=True))
    def check(draw: random.Random) -> None:
        content = mutate(trial.content, kind.form, draw)
        counts["tried"] += 1
        try:
            trial.read(content)
            counts["loaded"] += 1
        except FathometerError:
            counts["refused"] += 1

    row |= {"kind": kind.name, "fault": "changed"}
    try:
        check()
    finally:
        row |= {what: counts[what] for what in ("tried", "refused", "loaded")}


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.name)
def test_a_file_cut_short(kind: Kind, full: bool, row: Row, tmp_path: Path) -> None:
    trial = _Trial(kind, tmp_path)
    whole = trial.content
    draw, step = random.Random(0), 1 if full else 150
    places = [
        *range(0, min(400, len(whole)), step),
        *(draw.randrange(len(whole)) for _ in range(100 if full else 2)),
    ]
    counts, faults = Counter[str](), []
    for place in places:
        try:
            found = trial.read(whole[:place])
        except FathometerError:
            counts["refused"] += 1
        else:
            counts["loaded"] += 1
            is_whole = found == trial.whole and (kind.is_remade or not whole[place:].strip())
            faults += [] if is_whole else [f"cut at byte {place}: less was read than was there"]
    row |= {"kind": kind.name, "fault": "cut short", "tried": len(places)}
    row |= {what: counts[what] for what in ("refused", "loaded")}
    assert faults == []
