"""A statement of the paper with its measured sides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

ROUNDING = 1e-9  # violation of an inequality, relative to its sides, that counts as rounding
TRAINED = 0.05
"""Tolerance of an equation that holds at critical points: trained networks are critical to a few per cent."""


@dataclass(frozen=True)
class Statement:
    """One statement with both of its sides measured.

    Attributes:
        name: which one, as the paper numbers it.
        claim: what it says, in words and a formula.
        left: its left side.
        right: its right side.
        slack: how much room is left, ≥ 0 if the statement holds. For an inequality the greater side minus
            the smaller one; for an equation the tolerance minus the relative error.
        holds: whether it was found to hold.
        how: how that was decided.
        details: further numbers, among them those of the paper's literal version if it differs.
        note: where the paper is wrong, or what limits the check.
    """

    name: str
    claim: str
    left: float
    right: float
    slack: float
    holds: bool
    how: str
    details: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "FAILS"
        return f"{self.name}: {verdict}, {self.left:.4g} against {self.right:.4g}, slack {self.slack:.3g}"


def at_least(
    name: str,
    claim: str,
    left: float,
    right: float,
    *,
    details: Mapping[str, float] | None = None,
    note: str = "",
) -> Statement:
    """Decide an inequality left ≥ right; an infinite left side satisfies it.

    Example:
        >>> at_least("1 + 1 ≥ 1", "obvious", 2.0, 1.0).holds
        True
    """
    slack = left - right
    holds = slack >= -ROUNDING * max(abs(right), 1e-300) if math.isfinite(left) else left > 0
    how = f"left − right ≥ −{ROUNDING:g}·|right|, for rounding"
    return Statement(name, claim, left, right, slack, bool(holds), how, dict(details or {}), note)


def equal(
    name: str,
    claim: str,
    left: float,
    right: float,
    *,
    error: float,
    tolerance: float,
    measure: str,
    details: Mapping[str, float] | None = None,
    note: str = "",
) -> Statement:
    """Decide an equation, whose `error` was measured as `measure` says; NaN does not hold.

    Example:
        >>> equal("2 = 2", "obvious", 2.0, 2.0, error=0.0, tolerance=1e-9, measure="|left − right|").slack
        1e-09
    """
    return Statement(
        name,
        claim,
        left,
        right,
        tolerance - error,
        bool(error <= tolerance),
        f"{measure} ≤ {tolerance:g}",
        {"error": error, **(details or {})},
        note,
    )


def relative(left: float, right: float) -> float:
    """Compute |left − right| over the greater of the two in size; 0 if both are 0.

    Example:
        >>> relative(2.0, 1.0), relative(0.0, 0.0)
        (0.5, 0.0)
    """
    scale = max(abs(left), abs(right))
    return abs(left - right) / scale if scale > 0 else 0.0
