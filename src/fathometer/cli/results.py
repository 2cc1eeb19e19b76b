"""Reads what the arguments of a command name: results by path or URL, and facts about the networks."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd

from fathometer.compare import (
    by_name,
    facts_of,
    families_by_pattern,
    known_facts,
    read_facts,
    unknown_networks,
)
from fathometer.compare.soundings import measured_gauges
from fathometer.errors import InputError, join_names
from fathometer.results.history import History
from fathometer.results.linearized import Linearized
from fathometer.results.loading import is_sweep, load, open_results
from fathometer.results.similarity import SimilarityMap
from fathometer.results.sounding import Sounding, column_of
from fathometer.results.store import Store

if TYPE_CHECKING:
    from fathometer.leaky import LeakySweep

Results: TypeAlias = "dict[str, Sounding] | LeakySweep | History | SimilarityMap | Linearized"


def read_results(places: Sequence[str], *, strict: bool = False) -> Results:
    """Read soundings by name from files and folders, by path or URL; or one result of another kind."""
    if len(places) == 1:
        store = Store(places[0])
        if not store.is_folder() or is_sweep(store):
            found: Sounding | History | SimilarityMap | Linearized | LeakySweep = load(places[0])
            return _by_name({places[0]: found}) if isinstance(found, Sounding) else found
    return read_soundings(places, strict=strict)


def read_soundings(places: Sequence[str], *, strict: bool = False) -> dict[str, Sounding]:
    """Read soundings by name; those that nothing else distinguishes are named by their files."""
    named = _by_name(open_results(places, strict=strict).soundings)
    if len(places) == 1 and all("survey" in sounding.provenance.settings for sounding in named.values()):
        return dict(sorted(named.items()))  # a survey names its files by hashes, which are in no order
    return named


def _by_name(found: Mapping[str, Sounding]) -> dict[str, Sounding]:
    names = list(by_name(list(found.values())))
    alike = {name.rpartition(" #")[0] for name in names if " #" in name}
    for index, (name, path) in enumerate(zip(names, found, strict=True)):
        plain = name.rpartition(" #")[0] or name
        if plain in alike:
            names[index] = f"{plain}, {path}"
    return dict(zip(names, found.values(), strict=True))


def read_sounding(place: str) -> Sounding:
    """Read the one sounding of a file."""
    if is_folder(place):
        raise InputError(f"{place}: expected a file, got a folder; `report` and `compare` read folders")
    (sounding,) = read_soundings([place]).values()
    return sounding


def choose_gauge(gauge: str | None, soundings: Iterable[Sounding]) -> str:
    """Return the column of the gauge that was asked for.

    Without one, affinity if it was measured, else the first gauge; of residual paths the first, a rank.
    """
    soundings = list(soundings)
    measured = measured_gauges(soundings)
    if gauge is not None:
        return column_of(gauge, measured)
    are_paths = all("path" in sounding.provenance.settings for sounding in soundings)
    return "affinity" if "affinity" in measured and not are_paths else measured[0]


def is_folder(place: str) -> bool:
    """Return whether it is a folder, by path or URL."""
    return Store(place).is_folder()


def facts_for(named: Mapping[str, Sounding], file: Path | None, patterns: Sequence[str]) -> pd.DataFrame:
    """Return facts about the networks, from a file or else from their soundings; patterns come first."""
    if file is not None:
        table = read_facts(file)
        facts = facts_of(named, table)
        if facts.empty:
            raise InputError(
                f"{file}: none of its networks is among the soundings, which are {', '.join(named)}"
            )
        unknown = unknown_networks(named, table)
        if unknown:
            warnings.warn(
                f"{file}: no sounding of {join_names(unknown)}; these rows are not used", stacklevel=2
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
        raise InputError(f"expected NAME=PATTERN, such as ResNet=resnet*, got {text!r}", parameter="family")
    return name, pattern
