"""What the arguments of a command name: soundings, a folder of them, a leaky sweep, a training's history."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias

from fathometer.compare import by_name
from fathometer.errors import InputError
from fathometer.leaky.run import LeakySweep
from fathometer.leaky.run_files import PLAN, load_sweep
from fathometer.results.history import History
from fathometer.results.history_file import SCHEMA as HISTORY
from fathometer.results.history_file import load as load_history
from fathometer.results.sounding import Sounding
from fathometer.results.store import Store, local_copy, open_results

Results: TypeAlias = "dict[str, Sounding] | LeakySweep | History"


def read_results(places: Sequence[str], *, strict: bool = False) -> Results:
    """Soundings by name from files and folders, local or by URL; or one sweep; or one history."""
    if len(places) == 1 and (kind := _other_kind(places[0])):
        with local_copy(places[0]) as path:
            return load_sweep(path) if kind == "a leaky sweep" else load_history(path)
    return read_soundings(places, strict=strict)


def read_soundings(places: Sequence[str], *, strict: bool = False) -> dict[str, Sounding]:
    """Soundings by name; those that nothing else sets apart are named by their files."""
    for place in places:
        if kind := _other_kind(place):
            raise InputError(
                f"{place}: is {kind}, which is shown alone by `report` or `plot`, not beside other results"
            )
    found = open_results(places, strict=strict).soundings
    names = list(by_name(list(found.values())))
    alike = {name.rpartition(" #")[0] for name in names if " #" in name}
    for index, (name, path) in enumerate(zip(names, found, strict=True)):
        plain = name.rpartition(" #")[0] or name
        if plain in alike:
            names[index] = f"{plain}, {path}"
    return dict(zip(names, found.values(), strict=True))


def is_folder(place: str) -> bool:
    """Whether it is a folder, local or by URL."""
    return Store(place).is_folder()


def _other_kind(place: str) -> str | None:
    """What a place is, if it is neither a sounding nor a folder of them; its loader says if it is broken."""
    store = Store(place)
    if store.is_folder():
        return "a leaky sweep" if store.exists(PLAN) else None
    if not place.lower().endswith(".json"):
        return None
    return "a history of a training" if json.dumps(HISTORY).encode() in (store.read() or b"")[:200] else None
