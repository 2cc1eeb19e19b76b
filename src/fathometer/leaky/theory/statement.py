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
    """One statement with both of its sides measured: an inequality has a margin, an equation an error.

    Attributes:
        name: which one, as the paper numbers it.
        claim: what it says, in words and a formula.
        left: its left side.
        right: its right side.
        margin: of an inequality, the greater side minus the smaller one, negative if it is violated; NaN
            for an equation.
        error: of an equation, the relative error, as `how` says; NaN for an inequality.
        tolerance: the violation −margin, or the error, up to which the statement is found to hold.
        holds: whether it was found to hold.
        how: how that was decided.
        paper: the right side with what the paper prints, where we correct it; else NaN.
        details: further numbers.
        note: where the paper is wrong, or what limits the check.
    """

    name: str
    claim: str
    left: float
    right: float
    margin: float
    error: float
    tolerance: float
    holds: bool
    how: str
    paper: float = math.nan
    details: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "FAILS"
        room = f"error {self.error:.3g}" if math.isnan(self.margin) else f"margin {self.margin:.3g}"
        return f"{self.name}: {verdict}, {self.left:.4g} against {self.right:.4g}, {room}"


def at_least(
    name: str,
    claim: str,
    left: float,
    right: float,
    *,
    paper: float = math.nan,
    details: Mapping[str, float] | None = None,
    note: str = "",
) -> Statement:
    """Decide an inequality left ≥ right, up to rounding; an infinite left side satisfies it.

    Example:
        >>> at_least("1 + 1 ≥ 1", "obvious", 2.0, 1.0).margin, at_least("", "", 0.1 + 0.2, 0.3).holds
        (1.0, True)
    """
    margin, tolerance = left - right, ROUNDING * max(abs(right), 1e-300)
    holds = margin >= -tolerance if math.isfinite(left) else left > 0
    how = f"left − right ≥ −{ROUNDING:g}·|right|, for rounding"
    return Statement(
        name,
        claim,
        left,
        right,
        margin,
        math.nan,
        tolerance,
        bool(holds),
        how,
        paper,
        dict(details or {}),
        note,
    )


def equal(
    name: str,
    claim: str,
    left: float,
    right: float,
    *,
    error: float,
    tolerance: float,
    measure: str,
    paper: float = math.nan,
    details: Mapping[str, float] | None = None,
    note: str = "",
) -> Statement:
    """Decide an equation, whose `error` was measured as `measure` says; NaN does not hold.

    Example:
        >>> equal("2 = 2", "obvious", 2.0, 2.0, error=0.0, tolerance=1e-9, measure="|left − right|").holds
        True
    """
    how, holds = f"{measure} ≤ {tolerance:g}", bool(error <= tolerance)
    return Statement(
        name, claim, left, right, math.nan, error, tolerance, holds, how, paper, details or {}, note
    )


def relative(left: float, right: float) -> float:
    """Compute |left − right| over the greater of the two in size; 0 if both are 0.

    Example:
        >>> relative(2.0, 1.0), relative(0.0, 0.0)
        (0.5, 0.0)
    """
    scale = max(abs(left), abs(right))
    return abs(left - right) / scale if scale > 0 else 0.0
