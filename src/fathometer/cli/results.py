"""What the arguments of a command name: soundings, a folder of them, a leaky sweep, a training's history."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from fathometer.compare import by_name
from fathometer.errors import InputError
from fathometer.history import History
from fathometer.history_file import SCHEMA as HISTORY
from fathometer.history_file import load as load_history
from fathometer.leaky.run import LeakySweep
from fathometer.leaky.run_files import PLAN, load_sweep
from fathometer.sounding import Sounding
from fathometer.sounding_file import load

Results: TypeAlias = "dict[str, Sounding] | LeakySweep | History"

_SOUNDINGS = (".json", ".parquet")


def read_results(paths: Sequence[Path]) -> Results:
    """Soundings by name from files and folders; or one sweep; or one history."""
    if len(paths) == 1 and (paths[0] / PLAN).is_file():
        return load_sweep(paths[0])
    if len(paths) == 1 and _is_history(paths[0]):
        return load_history(paths[0])
    return read_soundings(paths)


def read_soundings(paths: Sequence[Path]) -> dict[str, Sounding]:
    """Soundings from files and folders, by name."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.suffix in _SOUNDINGS and file.is_file())
            if not inside:
                raise InputError(f"{path}: no .json or .parquet file in this folder")
            found += inside
        else:
            found.append(path)
    for path in found:
        if (path / PLAN).is_file() or _is_history(path):
            raise InputError(f"{path}: not a sounding; a leaky sweep or a history stands alone")
    return by_name([load(path) for path in dict.fromkeys(found)])


def _is_history(path: Path) -> bool:
    """Whether its first bytes say so; whether it can be read is for the loader to say."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        return json.dumps(HISTORY).encode() in file.read(200)
