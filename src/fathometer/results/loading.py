"""Reads results of every kind from files and folders, local or by URL."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from fathometer.errors import InputError
from fathometer.results import checkup, history, linearized, similarity, sounding
from fathometer.results.checkup import Checkup
from fathometer.results.files import parse_json
from fathometer.results.history import History
from fathometer.results.linearized import Linearized
from fathometer.results.similarity import SimilarityMap
from fathometer.results.sounding import SUFFIXES, Sounding, load_parquet
from fathometer.results.store import Place, Store, local_copy

SWEEP = "sweep.json"
"""The file by which a folder of Leaky ResNets is known."""

_MAX_NAMED = 5  # skipped files that a warning names
_KINDS: dict[type, str] = {
    History: "the history of a training; report or plot it alone",
    SimilarityMap: "a similarity map; report or plot it alone",
    Checkup: "a checkup, not a sounding",
    Linearized: "a linearized network; report or plot it alone",
}


def load(path: Place) -> Any:
    """Read a result that fathometer wrote.

    That is a `Sounding`, a `History`, a `SimilarityMap`, a `Checkup`, a `Linearized`, or a folder of Leaky
    ResNets.

    Args:
        path: a `.json` or `.parquet` file, the folder of a leaky run, or a URL of one of these that fsspec
            opens (`s3://bucket/net.json`).

    Raises:
        InputError: if there is no such file, if it is broken, or if it is something else.
    """
    store = Store(path)
    if not store.is_folder():
        return _read(store)
    from fathometer.leaky import load_sweep

    with local_copy(path) as folder:
        return load_sweep(folder)


def load_history(path: Place) -> History:
    """Read a history from a file that `History.save` wrote."""
    return history.from_json(_content(Store(path)), str(path))


class Results(NamedTuple):
    """Soundings that were read.

    Attributes:
        soundings: by path or URL.
        skipped: why a file was skipped, by path or URL.
    """

    soundings: dict[str, Sounding]
    skipped: dict[str, str]


def open_results(places: Place | Iterable[Place], *, strict: bool = False) -> Results:
    """Read soundings from files and folders, local or by URL.

    A folder stands for all its `.json` and `.parquet` files. A file in it that is not a sounding is skipped,
    counted and named in a warning. A file that is given by its own name must be a sounding.

    Args:
        places: paths or URLs that fsspec opens.
        strict: raise an error for the first file of a folder that is not a sounding.

    Raises:
        InputError: for a missing file or folder, or a folder without any sounding.
    """
    found = Results({}, {})
    seen: set[str] = set()
    duplicates: list[str] = []
    for place in [places] if isinstance(places, str | Path) else places:
        store = Store(place)
        if not store.exists():
            raise InputError(f"{place}: no such file or folder")
        is_folder = store.is_folder()
        if is_folder and is_sweep(store):
            raise InputError(f"{place}: is a sweep of Leaky ResNets; report or plot it alone")
        used = 0
        for name in store.names(endings=SUFFIXES) if is_folder else [""]:
            path = store.path(name)
            if (real := store.real_path(name)) in seen:
                duplicates.append(path)
                used += 1
                continue
            seen.add(real)
            try:
                sounding = _read(store, name)
                if not isinstance(sounding, Sounding):
                    raise InputError(f"{path}: is {_KINDS[type(sounding)]}")
                found.soundings[path] = sounding
                used += 1
            except InputError as error:
                if strict or not is_folder:
                    raise
                found.skipped[path] = str(error).removeprefix(f"{path}: ")
        if is_folder and not used:
            raise InputError(
                f"{place}: expected a sounding (.json or .parquet) in this folder, got none"
                + _listed(found.skipped)
            )
    if duplicates:
        warnings.warn(f"given twice, used once: {', '.join(duplicates)}", stacklevel=2)
    if found.skipped:
        count = f"{len(found.skipped)} {'file' if len(found.skipped) == 1 else 'files'}"
        warnings.warn(f"skipped {count}{_listed(found.skipped)}", stacklevel=2)
    return found


def _listed(skipped: dict[str, str]) -> str:
    """Return the skipped files with their reasons, as the end of a message."""
    named = [f"{path}: {reason}" for path, reason in list(skipped.items())[:_MAX_NAMED]]
    more = [f"and {len(skipped) - _MAX_NAMED} more"] if len(skipped) > _MAX_NAMED else []
    return f": {'; '.join([*named, *more])}" if skipped else ""


def is_sweep(folder: Store) -> bool:
    """Say whether a folder has Leaky ResNets in it, and not soundings."""
    return folder.exists(SWEEP)


def _read(store: Store, name: str = "") -> Sounding | History | SimilarityMap | Checkup | Linearized:
    """Read a file; its schema says what it is."""
    path = store.path(name)
    if path.lower().endswith(".parquet"):
        with local_copy(path) as file:
            return load_parquet(file, path)
    if not path.lower().endswith(".json"):
        if not store.exists(name):
            raise InputError(f"{path}: no such file or folder")
        raise InputError(f"{path}: expected a result, a file that ends in {' or '.join(SUFFIXES)}")
    plain = parse_json(_content(store, name), path, "a result of fathometer")
    schema = plain.get("schema") if isinstance(plain, dict) else None
    for kind in (history, similarity, checkup, linearized):
        if schema == kind.SCHEMA:
            return kind.from_plain(plain, path)
    return sounding.from_plain(plain, path)


def _content(store: Store, name: str = "") -> bytes:
    content = store.read(name)
    if content is None:
        raise InputError(f"{store.path(name)}: no such file or folder")
    return content
