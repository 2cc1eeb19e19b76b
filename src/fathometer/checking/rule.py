"""The record of a rule, and how rules are applied: one that fails is reported and stops nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from fathometer.checking.evidence import Evidence
from fathometer.errors import first_line
from fathometer.results.checkup import Finding
from fathometer.results.severity import SEVERITIES, Severity


@dataclass(frozen=True)
class Hit:
    """What the function of a rule returns for one place.

    Attributes:
        place: the site, module or parameter; empty for the whole network.
        sentence: what was found.
        numbers: what was measured.
        size: how far beyond the threshold; the largest comes first.
        severity: another one than that of the rule.
        advice: what to try here, if it is not what the rule says.
    """

    place: str
    sentence: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    size: float = 0.0
    severity: Severity | None = None
    advice: str = ""


@dataclass(frozen=True)
class Rule:
    """One thing that may be wrong with a network.

    Attributes:
        name: also the anchor of its explanation on the page `check` of the documentation.
        severity: of its findings, unless they have one of their own.
        needs: what it looks at, `sites.affinity`, `weights` or `facts.accuracy`; without that it is skipped.
        find: a function of the evidence that returns what it has found.
        why: why it matters.
        advice: what to try.
    """

    name: str
    severity: Severity
    needs: tuple[str, ...]
    find: Callable[[Evidence], Iterable[Hit]]
    why: str
    advice: str


def apply_rules(rules: Iterable[Rule], evidence: Evidence) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """Return the findings, the most severe first, and why rules were skipped.

    Of equal severity, findings are in the order of the rules: causes before what follows from them.
    """
    found: list[tuple[int, int, float, Finding]] = []
    skipped: dict[str, str] = {}
    for order, rule in enumerate(rules):
        if reason := next(filter(None, map(evidence.missing, rule.needs)), ""):
            skipped[rule.name] = reason
            continue
        try:
            hits = list(rule.find(evidence))
        except Exception as error:
            skipped[rule.name] = f"the rule failed ({type(error).__name__}: {first_line(error)})"
            continue
        for hit in hits:
            severity = hit.severity or rule.severity
            numbers = {name: float(value) for name, value in hit.numbers.items()}
            advice = hit.advice or rule.advice
            finding = Finding(rule.name, severity, hit.place, hit.sentence, numbers, rule.why, advice)
            found.append((SEVERITIES.index(severity), order, -hit.size, finding))
    found.sort(key=lambda entry: entry[:3])
    return tuple(finding for *_, finding in found), skipped
