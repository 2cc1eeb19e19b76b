"""The verdict on an item: the numbers of every claim, what they decide, and how they were measured.

A verdict is written once, by a run. It holds no words about claims or tests: the item has these.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np

from fathometer.errors import InputError
from fathometer.results import complete_file
from papers.item import Claim, Item, NotDecided, Numbers, Scale, fill

SCHEMA = "fathometer.verdict"
VERSION = 2
MIN_POWER = 0.8
"""A test with less power decides nothing."""

Outcome: TypeAlias = Literal[
    "holds", "holds in part", "does not hold", "not decided", "verified numerically", "not run"
]
"""Of the paper's claims that were decided all hold, some hold or none holds; none could be decided; the item
has no claim but those that are verified numerically, and all are."""


class Answer(msgspec.Struct, frozen=True):
    """What the test of a claim found."""

    holds: bool | None  # None if the claim could not be decided
    numbers: dict[str, float | str | list[float]] = {}
    missing: str = ""  # why it could not be measured
    size: float | None = None  # of a statistical test: how often it succeeds by chance, simulated
    power: float | None = None  # and how often at the effect that the paper shows


class Verdict(msgspec.Struct, frozen=True):
    """The result of an item at one scale."""

    item: str
    fingerprint: str  # of the claims and tests; see `Item.fingerprint`
    scale: Scale
    answers: dict[str, Answer]  # by claim
    facts: dict[str, float | str | list[float]]
    figures: list[str]  # names of the pictures in the same folder
    command: str  # the command that repeats it, with words instead of the user's paths
    commit: str
    machine: str
    date: str  # when it was finished, UTC
    seconds: float
    versions: dict[str, str]

    def is_stale(self, item: Item) -> bool:
        """Say whether the claims or tests of the item have changed since."""
        return self.fingerprint != item.fingerprint

    def outcome(self, item: Item) -> Outcome:
        """Say what the answers decide; a smoke run decides nothing."""
        if self.scale == "smoke":
            return "not decided"
        of_paper = [self.answers[name].holds for name, claim in item.claims.items() if claim.kind == "paper"]
        decided = [holds for holds in of_paper if holds is not None]
        if not of_paper:
            numerical = [
                self.answers[name].holds for name, claim in item.claims.items() if claim.kind == "numerical"
            ]
            if False in numerical:
                return "does not hold"
            return "verified numerically" if numerical and all(numerical) else "not decided"
        if not decided:
            return "not decided"
        return "holds" if all(decided) else "holds in part" if any(decided) else "does not hold"

    def notes(self, item: Item) -> list[str]:
        """Fill the notes of the item; those whose facts were not recorded are left out."""
        found = []
        for words in item.notes:
            try:
                found.append(fill(words, self.facts))
            except KeyError:
                continue
        return found

    def save(self, path: Path) -> None:
        """Write JSON with a digest; the file appears when it is complete."""
        found = {"schema": SCHEMA, "version": VERSION, **msgspec.to_builtins(self)}
        found["digest"] = _digest(found)
        with complete_file(path) as part:
            part.write_text(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


def answer(claim: Claim, evidence: Any, draws: int) -> Answer:
    """Measure and decide a claim; a statistical test with little power leaves it undecided.

    Args:
        claim: the claim.
        evidence: what the run of the item returned.
        draws: simulated experiments, each with and without the effect.
    """
    try:
        numbers = claim.measure(evidence)
    except NotDecided as reason:
        return Answer(None, missing=str(reason))
    recorded = rounded(numbers)
    if undefined := [name for name in numbers if name not in recorded]:
        return Answer(None, recorded, missing=f"{', '.join(undefined)} could not be computed")
    if claim.simulation is None:
        return Answer(bool(claim.holds(recorded)), recorded)
    size, power = simulate(claim, numbers, draws)
    return Answer(decide(claim, recorded, power), recorded, size=size, power=power)


def decide(claim: Claim, numbers: Numbers, power: float | None) -> bool | None:
    """Apply the rule of a claim to recorded numbers."""
    if power is not None and power < MIN_POWER:
        return None
    return bool(claim.holds(numbers))


def simulate(claim: Claim, numbers: Numbers, draws: int) -> tuple[float, float]:
    """Return size and power of a statistical test: how often it succeeds without and with the effect."""
    assert claim.simulation is not None
    generator = np.random.default_rng(0)
    shares = []
    for present in (False, True):
        simulated = (claim.simulation.draw(generator, present, numbers) for _ in range(draws))
        shares.append(float(np.mean([bool(claim.holds(one)) for one in simulated])))
    return shares[0], shares[1]


def read_verdict(path: str | Path) -> Verdict:
    """Read a verdict from its file; one that was edited is refused."""
    path = Path(path)
    try:
        found = msgspec.json.decode(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as a verdict ({error})") from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise InputError(f"{path}: not a verdict, as python -m papers writes it")
    if found.get("version") != VERSION:
        raise InputError(f"{path}: unknown format version {found.get('version')!r}, expected {VERSION}")
    if found.get("digest") != _digest(found):
        raise InputError(f"{path}: it was edited after it was written; run the item again")
    try:
        return msgspec.convert(found, Verdict)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: damaged; expected a whole verdict ({error})") from error


def rounded(numbers: Numbers) -> dict[str, float | str | list[float]]:
    """Round to six digits, as in a file. JSON has no NaN, which is left out, and no infinity: 1e300."""
    found: dict[str, float | str | list[float]] = {}
    for name, value in numbers.items():
        if isinstance(value, str):
            found[name] = value
        elif isinstance(value, Sequence):
            numbers_of = np.asarray(value, float)
            found |= {} if np.isnan(numbers_of).any() else {name: [_round(each) for each in numbers_of]}
        elif not math.isnan(value):
            found[name] = _round(value)
    return found


def _round(value: float) -> float:
    return float(f"{min(max(float(value), -1e300), 1e300):.6g}")


def _digest(found: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a record, which tells whether it was edited."""
    rest = {name: value for name, value in found.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
