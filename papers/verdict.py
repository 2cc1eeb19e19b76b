"""The verdict on an item: every claim with its test and result, and how it was measured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from fathometer.errors import InputError
from fathometer.results import complete_file
from papers.item import Answer, Answers, Claim, Scale

SCHEMA = "fathometer.verdict"
VERSION = 1

Outcome: TypeAlias = Literal["holds", "holds in part", "does not hold", "not decided", "not run"]
"""Of the paper's claims all hold; some hold; none holds of those that were decided; none could be decided; or
nothing was run."""


@dataclass(frozen=True)
class Verdict:
    """The result of an item."""

    item: str
    title: str
    scale: Scale
    claims: Mapping[str, Claim]
    # the results of the tests, by the same names; empty if nothing ran
    answers: Answers = field(default_factory=dict)
    notes: Sequence[str] = ()  # what a reader should know besides
    command: str = ""  # the command that repeats it, with words instead of the user's paths
    device: str = ""  # where it ran
    date: str = ""  # when it was finished, UTC
    seconds: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)
    figures: Sequence[str] = ()  # names of the pictures in the same folder
    why: str = ""  # the reason, if nothing ran
    commit: str = ""  # of the code; empty in records before 2026-11-18

    @property
    def outcome(self) -> Outcome:
        """The outcome, from the answers; a smoke run decides nothing."""
        found = self._of_the_paper
        if not self.answers:
            return "not run"
        if self.scale == "smoke" or all(holds is None for holds in found):
            return "not decided"
        return "holds" if all(found) else "holds in part" if any(found) else "does not hold"

    @property
    def summary(self) -> str:
        """The outcome, with the number of decided claims if not all of the paper's were."""
        found = self._of_the_paper
        decided = sum(holds is not None for holds in found)
        partial = self.outcome not in ("not decided", "not run") and decided < len(found)
        return f"{self.outcome} ({decided} of {len(found)} claims decided)" if partial else self.outcome

    @property
    def _of_the_paper(self) -> list[bool | None]:
        """The results of the claims that count."""
        return [answer.holds for name, answer in self.answers.items() if not self.claims[name].ours]

    def save(self, path: Path) -> None:
        """Write JSON; the file appears when it is complete."""
        found: dict[str, Any] = {"schema": SCHEMA, "version": VERSION}
        found |= {name: getattr(self, name) for name in ("item", "title", "scale", "outcome")}
        found["claims"] = {name: self._claim(name) for name in self.claims}
        facts = ("notes", "figures", "command", "device", "commit", "date")
        found |= {name: getattr(self, name) for name in facts}
        found |= {"seconds": round(self.seconds, 1), "versions": self.versions}
        if self.why:
            found["why"] = self.why
        found["digest"] = _digest(found)
        with complete_file(path) as part:
            part.write_text(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")

    def _claim(self, name: str) -> dict[str, Any]:
        claim, answer = self.claims[name], self.answers.get(name)
        found: dict[str, Any] = {"claim": claim.words, "test": claim.test, "ours": claim.ours}
        if answer is not None:
            found |= {"measured": answer.measured, "holds": answer.holds, "numbers": _rounded(answer.numbers)}
        return found


def _digest(found: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a record, which tells whether it was edited."""
    rest = {name: value for name, value in found.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _rounded(numbers: Mapping[str, float]) -> dict[str, float]:
    """Round to six digits, as in a file."""
    return {key: float(f"{value:.6g}") for key, value in numbers.items()}


class _FileClaim(msgspec.Struct):
    claim: str
    test: str
    ours: bool
    measured: str | None = None
    holds: bool | None = None
    numbers: dict[str, float] = {}


class _File(msgspec.Struct):
    item: str
    title: str
    scale: Scale
    claims: dict[str, _FileClaim]
    notes: tuple[str, ...]
    figures: tuple[str, ...]
    command: str
    device: str
    date: str
    seconds: Annotated[float, msgspec.Meta(ge=0)]
    versions: dict[str, str]
    commit: str = ""
    why: str = ""


def read_verdict(path: str | Path) -> Verdict:
    """Read a verdict from its file."""
    path = Path(path)
    try:
        head = msgspec.json.decode(path.read_bytes())  # refuses NaN, and halves of characters
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as a verdict ({error})") from error
    if not isinstance(head, dict) or head.get("schema") != SCHEMA:
        raise InputError(f"{path}: not a verdict, as python -m papers writes it")
    if head.get("version") != VERSION:
        raise InputError(
            f"{path}: unknown format version {head.get('version')!r}, expected {VERSION}; update fathometer"
        )
    try:
        file = msgspec.convert(head, _File)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: damaged; expected a whole verdict ({error})") from error
    if "digest" in head and head["digest"] != _digest(head):
        raise InputError(f"{path}: it was edited after it was written; run the item again")
    claims = {name: Claim(each.claim, each.test, each.ours) for name, each in file.claims.items()}
    answers = {
        name: Answer(each.holds, each.measured, _rounded(each.numbers))
        for name, each in file.claims.items()
        if each.measured is not None
    }
    others = [each.name for each in fields(Verdict) if each.name not in ("claims", "answers")]
    return Verdict(claims=claims, answers=answers, **{name: getattr(file, name) for name in others})
