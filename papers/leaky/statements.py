"""Statements of the paper over many networks: a table, and claims that are verified numerically."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from fathometer.leaky import LeakyRun
from fathometer.leaky.theory import Statement
from papers.item import Claim, Kind, NotDecided, Numbers


class Checked(NamedTuple):
    """A statement, and what it was measured on."""

    kind: str  # of paths or matrices: `trained`, `solved`, `flow`, `drawn` …
    where: str
    depth: float  # L̃; NaN where there is none
    statement: Statement


def name_of(run: LeakyRun) -> str:
    """Write L̃ and seed."""
    return f"L̃ = {run.design.effective_depth:g}, seed {run.design.seed}"


def check_runs(
    kind: str, runs: Iterable[LeakyRun], statements: Callable[[LeakyRun], Iterable[Statement]]
) -> list[Checked]:
    """Check statements about each network."""
    return [
        Checked(kind, name_of(run), run.design.effective_depth, statement)
        for run in runs
        for statement in statements(run)
    ]


def statement_table(checked: Iterable[Checked]) -> pd.DataFrame:
    """Make a row for each statement: what it was measured on, its sides, its margin or error."""
    names = ["name", "left", "right", "margin", "error", "holds"]
    rows = [(*one[:3], *(getattr(one.statement, name) for name in names)) for one in checked]
    return pd.DataFrame(rows, columns=["kind", "where", "depth", "statement", *names[1:]])


def named(checked: Iterable[Checked], *names: str) -> list[Checked]:
    """Select statements by name."""
    return [one for one in checked if one.statement.name in names]


def counted(checked: Sequence[Checked]) -> Numbers:
    """Count the statements that hold, by kind; the largest error and the lowest margin; the first that fails.

    Example:
        >>> from fathometer.leaky.theory.statement import at_least
        >>> one = Checked("drawn", "seed 0", 1.0, at_least("", "", 2.0, 1.0))
        >>> counted([one, one])
        {'statements': 2, 'holding': 2, 'kinds': '2 of 2 drawn', 'margin': 1.0, 'failing': 'none'}
    """
    if not checked:
        raise NotDecided("there was nothing to measure")
    groups: dict[str, list[bool]] = {}
    for one in checked:
        groups.setdefault(one.kind, []).append(one.statement.holds)
    failing = next((one for one in checked if not one.statement.holds), None)
    found: dict[str, float | str] = {
        "statements": len(checked),
        "holding": sum(one.statement.holds for one in checked),
        "kinds": ", ".join(f"{sum(held)} of {len(held)} {kind}" for kind, held in groups.items()),
    }
    errors = [one.statement.error for one in checked if not math.isnan(one.statement.error)]
    margins = [one.statement.margin for one in checked if not math.isnan(one.statement.margin)]
    if errors:
        found["error"] = max(errors)
    if margins:
        found["margin"] = min(margins)
    words = "" if failing is None else f"{failing.kind} {failing.where}, {failing.statement}"
    return found | {"failing": words or "none"}


def verified(
    words: str,
    test: str,
    select: Callable[[Sequence[Checked]], Sequence[Checked]],
    *,
    kind: Kind = "numerical",
    more: Callable[[Sequence[Checked]], Mapping[str, float]] = lambda _: {},
    says: str = "",
) -> Claim:
    """Make a claim that holds if every selected statement of the evidence does."""

    def measure(evidence: Sequence[Checked]) -> Numbers:
        chosen = select(evidence)
        return {**counted(chosen), **more(chosen)}

    def sentence(numbers: Any) -> str:
        room = [
            f"largest error {numbers['error']:.1g}" if "error" in numbers else "",
            f"lowest margin {numbers['margin']:.2g}" if "margin" in numbers else "",
            says.format_map(numbers),
            f"fails for {numbers['failing']}" if numbers["failing"] != "none" else "",
        ]
        return f"holds for {numbers['kinds']}; " + "; ".join(part for part in room if part)

    return Claim(words, test, measure, lambda n: n["holding"] == n["statements"], sentence, kind)


def of(*names: str) -> Callable[[Sequence[Checked]], Sequence[Checked]]:
    """Select statements of the evidence by name."""
    return lambda checked: named(checked, *names)
