"""docs/reliability.md, written from the records."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from soak.program import Program, Row
from soak.record import Record

PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"

_HEAD = """\
# What it stands up to

Programs in `soak/` try to break fathometer: awkward networks, awkward numbers, killed processes, full disks,
broken files. They write this page, from what they put on record in `docs/reliability/`. `make soak` runs them
all again, `python -m soak NAME` one of them. A small version of each runs with the tests, but for `ray`,
which needs a cluster, and `gauges-cuda`, which needs a GPU.
"""


def page(programs: Sequence[Program], records: Mapping[str, Record]) -> str:
    """The page, from the records of the programs that have one."""
    parts = [_HEAD, _overview([records[program.name] for program in programs if program.name in records])]
    for program in programs:
        parts.append(_section(records[program.name]) if program.name in records else _missing(program))
    return "\n".join(parts)


def _overview(records: Sequence[Record]) -> str:
    rows: list[Row] = [
        {
            "program": f"[`{record.name}`](#{_anchor(record.title)})",
            "what": record.title,
            "failures": len(record.failures),
            "took": _duration(record.seconds),
            "when": record.date[:10],
        }
        for record in records
    ]
    return _table(rows) if rows else ""


def _section(record: Record) -> str:
    failures = [f"- **Failure:** {_escaped(failure)}" for failure in record.failures]
    parts = [f"## {record.title}", record.asks, _table(record.rows)]
    parts += ["\n".join(failures) if failures else "No failure."]
    parts += ["\n".join(f"- {note}" for note in record.notes)] if record.notes else []
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    parts.append(
        f"<small>`python -m soak {record.name}`, {_duration(record.seconds)} on {record.device}, "
        f"{record.date}; {_source(record)}{versions}.</small>"
    )
    return "\n\n".join(parts) + "\n"


def _source(record: Record) -> str:
    return f"source {record.source}, " if record.source else ""


def _missing(program: Program) -> str:
    return f"## {program.title}\n\n{program.asks}\n\nNot run yet.\n"


def _anchor(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _table(rows: Sequence[Row]) -> str:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    numeric = {c for c in columns if all(isinstance(row.get(c, 0), int | float) for row in rows)}
    lines = [
        "| " + " | ".join(columns) + " |",
        "|" + "|".join("---:" if column in numeric else "---" for column in columns) + "|",
    ]
    lines += ["| " + " | ".join(_cell(row.get(column, "")) for column in columns) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: str | int | float) -> str:
    if isinstance(value, str):
        return _escaped(value)
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else f"{value:g}"


def _escaped(words: str) -> str:
    return words.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
