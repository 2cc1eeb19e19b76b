"""Statements of the paper over many networks: one table, one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from fathometer.leaky import LeakyRun
from fathometer.leaky.theory import Statement
from papers.item import Answer
from papers.leaky.networks import name_of


class CheckedStatement(NamedTuple):
    """A statement, and what it was measured on."""

    kind: str  # of paths or matrices: `trained`, `solved`, `flow`, `drawn` …
    where: str
    depth: float  # L̃; NaN where there is none
    statement: Statement


def statements_about(
    kind: str, runs: Iterable[LeakyRun], statements: Callable[[LeakyRun], Iterable[Statement]]
) -> list[CheckedStatement]:
    """Check statements about each network."""
    return [
        CheckedStatement(kind, name_of(run), run.design.effective_depth, statement)
        for run in runs
        for statement in statements(run)
    ]


def statement_table(checked: Iterable[CheckedStatement]) -> pd.DataFrame:
    """Make a row for each: `kind`, `where`, `depth`, `statement`, `left`, `right`, `slack`, `holds`."""
    rows = [
        (one.kind, one.where, one.depth, s.name, s.left, s.right, s.slack, s.holds)
        for one in checked
        for s in [one.statement]
    ]
    columns = ["kind", "where", "depth", "statement", "left", "right", "slack", "holds"]
    return pd.DataFrame(rows, columns=columns)


def sides_of(checked: Iterable[CheckedStatement]) -> dict[str, tuple[list[float], list[float]]]:
    """Collect the right and the left sides by kind, to draw them."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for one in checked:
        right, left = found.setdefault(one.kind, ([], []))
        right.append(one.statement.right)
        left.append(one.statement.left)
    return found


def named(checked: Sequence[CheckedStatement], *names: str) -> list[CheckedStatement]:
    """Select statements by name."""
    return [one for one in checked if one.statement.name in names]


def describe_holding(checked: Sequence[CheckedStatement]) -> str:
    """Write how many hold, by kind; and the first that does not.

    Example:
        >>> one = CheckedStatement("drawn", "seed 0", 1.0, Statement("", "", 2.0, 1.0, 1.0, True, ""))
        >>> describe_holding([one, one])
        'holds for 2 of 2 drawn'
    """
    parts = []
    for kind in dict.fromkeys(one.kind for one in checked):
        group = [one for one in checked if one.kind == kind]
        good = sum(one.statement.holds for one in group)
        parts.append(f"{good} of {len(group)} {kind}")
    failing = next((one for one in checked if not one.statement.holds), None)
    beyond = f", not for {failing.kind} {failing.where}: {_sides(failing.statement)}" if failing else ""
    return f"holds for {', '.join(parts)}{beyond}"


def every(checked: Sequence[CheckedStatement], words: str, numbers: dict[str, float] | None = None) -> Answer:
    """Decide a claim: it holds if every statement does; undecided if there is none."""
    if not checked:
        return Answer(None, f"there was nothing to measure; {words}")
    return Answer(
        all(one.statement.holds for one in checked),
        f"{describe_holding(checked)}; {words}",
        {
            "statements": float(len(checked)),
            "holding": float(sum(one.statement.holds for one in checked)),
            "least_slack": min(one.statement.slack for one in checked),
            **(numbers or {}),
        },
    )


def largest_error(checked: Sequence[CheckedStatement], kind: str | None = None) -> float:
    """Return the largest `error` of equations, of one kind or of all."""
    return max(one.statement.details["error"] for one in checked if kind in (None, one.kind))


def _sides(statement: Statement) -> str:
    return f"{statement.left:.3g} against {statement.right:.3g}"
