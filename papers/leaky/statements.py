"""Statements of the paper over many networks: one table, one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from fathometer.leaky import LeakyRun
from fathometer.leaky.theory import Statement
from papers.claim import Answer
from papers.leaky.networks import name_of


class Seen(NamedTuple):
    """A statement, and of what it was measured.

    Attributes:
        kind: of paths or matrices: `trained`, `solved`, `flow`, `drawn` …
        where: which one.
        depth: L̃; NaN where there is none.
        statement: with both sides.
    """

    kind: str
    where: str
    depth: float
    statement: Statement


def seen_in(
    kind: str, runs: Iterable[LeakyRun], statements: Callable[[LeakyRun], Iterable[Statement]]
) -> list[Seen]:
    """The statements about each network."""
    return [
        Seen(kind, name_of(run), run.design.effective_depth, statement)
        for run in runs
        for statement in statements(run)
    ]


def statement_table(seen: Iterable[Seen]) -> pd.DataFrame:
    """A row for each: `kind`, `where`, `depth`, `statement`, `left`, `right`, `slack`, `holds`."""
    rows = [
        (one.kind, one.where, one.depth, s.name, s.left, s.right, s.slack, s.holds)
        for one in seen
        for s in [one.statement]
    ]
    columns = ["kind", "where", "depth", "statement", "left", "right", "slack", "holds"]
    return pd.DataFrame(rows, columns=columns)


def sides_of(seen: Iterable[Seen]) -> dict[str, tuple[list[float], list[float]]]:
    """By kind, the right and the left sides, for a picture of one against the other."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for one in seen:
        right, left = found.setdefault(one.kind, ([], []))
        right.append(one.statement.right)
        left.append(one.statement.left)
    return found


def named(seen: Sequence[Seen], *names: str) -> list[Seen]:
    """Those whose statement has one of these names."""
    return [one for one in seen if one.statement.name in names]


def held(seen: Sequence[Seen]) -> str:
    """How many hold, by kind, in words; the first that does not by name.

    Example:
        >>> one = Seen("drawn", "seed 0", 1.0, Statement("", "", 2.0, 1.0, 1.0, True, ""))
        >>> held([one, one])
        'holds for 2 of 2 drawn'
    """
    parts = []
    for kind in dict.fromkeys(one.kind for one in seen):
        group = [one for one in seen if one.kind == kind]
        good = sum(one.statement.holds for one in group)
        parts.append(f"{good} of {len(group)} {kind}")
    failing = next((one for one in seen if not one.statement.holds), None)
    beyond = f", not for {failing.kind} {failing.where}: {_sides(failing.statement)}" if failing else ""
    return f"holds for {', '.join(parts)}{beyond}"


def every(seen: Sequence[Seen], words: str, numbers: dict[str, float] | None = None) -> Answer:
    """Holds where every one of them does; undecided where there is none."""
    if not seen:
        return Answer(None, f"there was nothing to measure; {words}")
    return Answer(
        all(one.statement.holds for one in seen),
        f"{held(seen)}; {words}",
        {
            "statements": float(len(seen)),
            "holding": float(sum(one.statement.holds for one in seen)),
            "least_slack": min(one.statement.slack for one in seen),
            **(numbers or {}),
        },
    )


def largest_error(seen: Sequence[Seen], kind: str | None = None) -> float:
    """Of equations, the largest `error`, of one kind or of all."""
    return max(one.statement.details["error"] for one in seen if kind in (None, one.kind))


def _sides(statement: Statement) -> str:
    return f"{statement.left:.3g} against {statement.right:.3g}"
