"""What the command line is told of networks apart from their soundings: `--families`, `--family`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import pandas as pd
import typer

from fathometer.compare import facts_of, families_by_pattern, known_facts, read_facts, unknown_networks
from fathometer.errors import InputError
from fathometer.results.sounding import Sounding

FamiliesOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A CSV with columns network, family, and any of accuracy, depth, parameters, gflops, year. "
        "Default: what the soundings of a survey, or torchvision, say.",
    ),
]
FamilyOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=PATTERN", help="A family by the names of its networks. Repeatable; goes before FILE."
    ),
]


def facts_for(named: Mapping[str, Sounding], file: Path | None, patterns: Sequence[str]) -> pd.DataFrame:
    """What is known of the networks, from the file or else from themselves; families by pattern go first."""
    if file is not None:
        table = read_facts(file)
        facts = facts_of(named, table)
        if facts.empty:
            raise InputError(f"{file}: none of its networks is here; these are {', '.join(named)}")
        unknown = unknown_networks(named, table)
        if unknown:
            more = f" and {len(unknown) - 8} more" if len(unknown) > 8 else ""
            warnings.warn(
                f"{file}: no sounding of {', '.join(unknown[:8])}{more}; these rows are not used",
                stacklevel=2,
            )
    else:
        facts = known_facts(named)
    if patterns:
        wanted: dict[str, list[str]] = {}
        for family, pattern in map(_pattern, patterns):
            wanted.setdefault(family, []).append(pattern)
        found = families_by_pattern(named, wanted)
        written = facts["family"].dropna().to_dict() if "family" in facts else {}
        facts = facts.reindex(list(dict.fromkeys([*facts.index, *found])))
        facts["family"] = pd.Series(written | found, dtype=object).reindex(facts.index)
    return facts


def _pattern(text: str) -> tuple[str, str]:
    name, equals, pattern = text.partition("=")
    if not (name and equals and pattern):
        raise InputError(f"--family {text}: expected NAME=PATTERN, such as ResNet=resnet*")
    return name, pattern
