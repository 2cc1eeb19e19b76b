"""What the arguments of a command name: soundings, a folder of them, a leaky sweep, a training's history."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from fathometer.compare import by_name
from fathometer.errors import InputError
from fathometer.leaky.run import LeakySweep
from fathometer.leaky.run_files import PLAN, load_sweep
from fathometer.results.history import History
from fathometer.results.history_file import SCHEMA as HISTORY
from fathometer.results.history_file import load as load_history
from fathometer.results.sounding import Sounding
from fathometer.results.sounding_file import load

Results: TypeAlias = "dict[str, Sounding] | LeakySweep | History"

_SOUNDINGS = (".json", ".parquet")


def read_results(paths: Sequence[Path]) -> Results:
    """Soundings by name from files and folders; or one sweep; or one history."""
    if len(paths) == 1 and (paths[0] / PLAN).is_file():
        return load_sweep(paths[0])
    if len(paths) == 1 and _is_history(paths[0]):
        return load_history(paths[0])
    return read_soundings(paths)


def read_soundings(files: Sequence[Path]) -> dict[str, Sounding]:
    """Soundings by name; those that nothing else sets apart are named by their files."""
    paths = _paths(files)
    soundings = [load(path) for path in paths]
    names = list(by_name(soundings))
    alike = {name.rpartition(" #")[0] for name in names if " #" in name}
    for place, (name, path) in enumerate(zip(names, paths, strict=True)):
        plain = name.rpartition(" #")[0] or name
        if plain in alike:
            names[place] = f"{plain}, {path}"
    return dict(zip(names, soundings, strict=True))


def _paths(files: Sequence[Path]) -> list[Path]:
    """The files of soundings; a folder stands for all that are in it."""
    found: list[Path] = []
    for path in files:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        if (path / PLAN).is_file() or _is_history(path):
            kind = "a history of a training" if path.is_file() else "a leaky sweep"
            raise InputError(
                f"{path}: is {kind}, which is shown alone by `report` or `plot`, not beside other results"
            )
        found += _inside(path) if path.is_dir() else [path]
    once = {path.resolve(): path for path in reversed(found)}
    twice = [str(path) for path in once.values() if [p.resolve() for p in found].count(path.resolve()) > 1]
    if twice:
        warnings.warn(f"given twice, taken once: {', '.join(twice)}", stacklevel=2)
    return list(once.values())[::-1]


def _inside(folder: Path) -> list[Path]:
    """The soundings in a folder; histories that lie beside them are left out, aloud."""
    inside = sorted(file for file in folder.iterdir() if file.suffix in _SOUNDINGS and file.is_file())
    films = [file for file in inside if _is_history(file)]
    if films:
        names = ", ".join(file.name for file in films)
        warnings.warn(f"{folder}: left out {names}, which is a history; report it alone", stacklevel=2)
    soundings = [file for file in inside if file not in films]
    if not soundings:
        raise InputError(f"{folder}: no sounding (.json or .parquet) in this folder")
    return soundings


def _is_history(path: Path) -> bool:
    """Whether its first bytes say so; whether it can be read is for the loader to say."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        return json.dumps(HISTORY).encode() in file.read(200)
