"""Mutated files of every kind through the loaders."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

from soak.files.kinds import KINDS, RESULTS, Kind
from soak.files.limits import Finding, tried
from soak.files.mutations import mutate
from soak.program import Effort, Outcome, Program, Row

_EACH = {"smoke": 5, "full": 500}  # of each kind, times its share
_FATES = ("loaded", "refused", "crashed", "out of range")


def run(effort: Effort) -> Outcome:
    """Every kind in turn."""
    rows: list[Row] = []
    failures: list[str] = []
    for kind in KINDS:
        findings = fuzzed(kind, round(kind.share * _EACH[effort]))
        counts = Counter(finding.fate for finding in findings)
        rows.append({"kind": kind.name, "files": len(findings), **{fate: counts[fate] for fate in _FATES}})
        failures += _told(kind, findings)
    total = _total("all plans and results", rows[: len(RESULTS)]), _total("all", rows)
    return Outcome([*rows, *total], failures)


def _total(name: str, rows: list[Row]) -> Row:
    return {"kind": name, **{key: sum(int(row[key]) for row in rows) for key in ("files", *_FATES)}}


def fuzzed(kind: Kind, count: int) -> list[Finding]:
    """So many mutants of a real file, one after the other through its loader; failures say what was done."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        real, scratch = folder / "real", folder / "scratch"
        real.mkdir()
        read = kind.make(real)
        content = (real / kind.file).read_bytes()
        shutil.copytree(real, scratch)
        read(scratch)  # as it was written it must pass

        def trial(number: int) -> None:
            for left in folder.glob("scratch*"):
                shutil.rmtree(left)
            shutil.copytree(real, scratch)
            (scratch / kind.file).write_bytes(mutate(content, kind.form, _seed(kind, number)).content)
            read(scratch)

        found = list(tried(trial, count))
    return [
        finding._replace(
            words=f"{mutate(content, kind.form, _seed(kind, finding.number)).words}: {finding.words}"
        )
        if finding.words
        else finding
        for finding in found
    ]


def _seed(kind: Kind, number: int) -> str:
    return f"{kind.name} {number}"


def _told(kind: Kind, findings: list[Finding]) -> list[str]:
    """Every failure, by the seed that makes its mutant again."""
    return [
        f"{kind.name}, seed {finding.number}: {finding.fate}: {finding.words}"
        for finding in findings
        if finding.fate in ("crashed", "out of range")
    ]


FUZZ_FILES = Program(
    "fuzz-files",
    "Broken files",
    "A real file of every kind that is read is changed in one place (bits, "
    "bytes, chunks; in JSON, TOML and safetensors also values, keys, nesting) and loaded, with 2 GB of memory"
    " and 10 seconds. It must be refused by a `FathometerError`, or give values in their ranges that can be "
    "shown, saved and loaded again; anything else is a failure.",
    run,
)
