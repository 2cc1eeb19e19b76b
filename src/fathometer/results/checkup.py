"""The result of a check: findings, the most severe first, and the rules that could not be applied."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from fathometer.results.files import as_json_number, assembled, check_format, save_json
from fathometer.results.provenance import Provenance
from fathometer.results.severity import SEVERITIES, Severity

SCHEMA = "fathometer.checkup"
VERSION = 1
MAX_PLACES = 3
"""So many places are listed of one rule."""


class Finding(msgspec.Struct, frozen=True):
    """Something that a rule has found.

    Attributes:
        rule: the name of the rule.
        severity: `error` (the numbers of this network cannot be trusted, or part of it does nothing),
            `warning` (probably not what was meant) or `note` (unusual, and good to know).
        place: the site, module or parameter; empty for the whole network.
        sentence: what was found.
        numbers: what was measured, by name.
        why: why it matters.
        advice: what to try.
    """

    rule: str
    severity: Severity
    place: str
    sentence: str
    numbers: dict[str, float] = msgspec.field(default_factory=dict)
    why: str = ""
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.severity}: {self.sentence} [{self.rule}]"


@dataclass(frozen=True, eq=False)
class Checkup:
    """What the rules have found in a network.

    Attributes:
        findings: the most severe first; of equal severity, causes before what follows from them.
        skipped: why a rule was not applied, by its name.
        rules: the names of all rules.
        provenance: network, data, settings, versions, date.
    """

    findings: tuple[Finding, ...]
    skipped: dict[str, str] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def severity(self) -> Severity | None:
        """The highest severity; None if nothing was found."""
        return self.findings[0].severity if self.findings else None

    @property
    def applied(self) -> int:
        """How many rules could be applied."""
        return len(self.rules) - len(self.skipped)

    @property
    def summary(self) -> str:
        """One line: how many findings of each severity, of how many rules."""
        counts = Counter(finding.severity for finding in self.findings)
        words = [f"{counts[kind]} {kind}{'s' * (counts[kind] != 1)}" for kind in SEVERITIES if counts[kind]]
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        return f"{', '.join(words) or 'nothing found'} ({self.applied} rules applied{skipped})"

    def table(self) -> pd.DataFrame:
        """Return a row for each finding."""
        columns = ["severity", "rule", "place", "sentence", "why", "advice"]
        rows = [{column: getattr(finding, column) for column in columns} for finding in self.findings]
        return pd.DataFrame(rows, columns=columns)

    def groups(self) -> list[list[Finding]]:
        """Return the findings by rule and severity, in their order."""
        found: dict[tuple[str, str], list[Finding]] = {}
        for finding in self.findings:
            found.setdefault((finding.severity, finding.rule), []).append(finding)
        return list(found.values())

    def at_least(self, severity: Severity) -> tuple[Finding, ...]:
        """Return the findings that are at least as severe."""
        limit = SEVERITIES.index(severity)
        return tuple(each for each in self.findings if SEVERITIES.index(each.severity) <= limit)

    def unreported(self, reported: set[str]) -> list[Finding]:
        """Return the first warning or error of each rule that is not in `reported`, and add it there."""
        new = []
        for finding in self.at_least("warning"):
            if finding.rule not in reported:
                reported.add(finding.rule)
                new.append(finding)
        return new

    def save(self, path: str | Path) -> Path:
        """Save one `.json` file; it appears once it is complete. `fathometer.load` reads it."""
        return save_json(path, json.dumps(self.to_plain(), indent=1, allow_nan=False) + "\n")

    def to_plain(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        findings: list[dict[str, Any]] = msgspec.to_builtins(self.findings)
        for finding in findings:
            numbers = finding["numbers"].items()
            finding["numbers"] = {name: as_json_number(value) for name, value in numbers}
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "findings": findings,
            "skipped": self.skipped,
            "rules": list(self.rules),
            "provenance": self.provenance.as_dict(),
        }

    def __str__(self) -> str:
        name = self.provenance.model.get("name", "network")
        lines = [f"{name} on {self.provenance.data.get('name', 'data')}: {self.summary}"]
        for group in self.groups():
            first = group[0]
            lines += ["", *(str(each) for each in group[:MAX_PLACES])]
            if len(group) > MAX_PLACES:
                lines.append(f"  … and at {len(group) - MAX_PLACES} more places")
            lines += [f"  why: {first.why}", f"  try: {first.advice}"]
        if self.skipped:
            lines += ["", *skipped_lines(self.skipped)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Checkup of {self.provenance.model.get('name', 'network')}: {self.summary}"

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        cells = (
            f"<tr><td>{each.severity}</td><td>{escape(each.sentence)}</td><td>{escape(each.advice)}</td>"
            f"<td>{each.rule}</td></tr>"
            for each in self.findings
        )
        return f"<p>{escape(repr(self))}</p><table>{''.join(cells)}</table>"


def skipped_lines(skipped: dict[str, str]) -> list[str]:
    """Say which rules were skipped, those with the same reason together."""
    by_reason: dict[str, list[str]] = {}
    for rule, reason in skipped.items():
        by_reason.setdefault(reason, []).append(rule)
    return [f"skipped {', '.join(rules)}: {reason}" for reason, rules in by_reason.items()]


class _File(msgspec.Struct):
    """What a file holds beside its schema and version."""

    findings: tuple[Finding, ...]
    skipped: dict[str, str]
    rules: tuple[str, ...]
    provenance: Provenance


def from_plain(content: Any, name: str = "checkup") -> Checkup:
    """Make a checkup from plain values; errors call it `name`."""
    check_format(content, SCHEMA, VERSION, name, "a checkup; `fathometer check` writes them")
    return assembled(name, lambda: _assembled(content))


def _assembled(content: Any) -> Checkup:
    for finding in content["findings"]:
        numbers = finding["numbers"].items()
        finding["numbers"] = {key: float(value) for key, value in numbers}
    file = msgspec.convert(content, _File)
    return Checkup(file.findings, file.skipped, file.rules, file.provenance)
