"""What a rule finds: one sentence about one place, with its numbers, why it matters and what to try."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Severity: TypeAlias = Literal["error", "warning", "note"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""From the most to the least severe."""

PAGE = "https://fathometer.readthedocs.io/en/latest/check/"


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

    @property
    def link(self) -> str:
        """Where the documentation explains the rule."""
        return f"{PAGE}#{self.rule}"

    def __str__(self) -> str:
        return f"{self.severity}: {self.sentence} [{self.rule}]"
