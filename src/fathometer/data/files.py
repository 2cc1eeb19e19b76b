"""Files and folders of data: which files they hold, and a hash of their content."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath

from fathometer.errors import InputError

_READ_COMPLETELY = 2**28  # bytes; a larger folder is hashed by names and sizes, which takes no reading
_CHUNK = 2**20


def files_below(root: Path) -> Iterator[PurePosixPath]:
    """Yield every file below `root`, relative to it, in no order, without hidden ones.

    Links are followed, but not in circles. A broken link is yielded, so that whoever opens it can report it.
    """
    yield from _below(root, PurePosixPath(), frozenset())


def is_hidden(name: str) -> bool:
    """Say whether a file is hidden, or left by macOS when it unpacked an archive."""
    return name.startswith(".") or name == "__MACOSX"


def contents_hash(path: str | Path) -> str:
    """Return the SHA-256 of a file, or of the names, sizes and contents of all files in a folder.

    Where the path lies and what it is called is not part of it. Of a folder that holds more than 256 MB the
    names and sizes are hashed, but not the contents.
    """
    try:
        return _hash(tuple(sorted(_facts(Path(path)))))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def _below(root: Path, folder: PurePosixPath, above: frozenset[str]) -> Iterator[PurePosixPath]:
    here = os.path.realpath(root / folder)
    if here in above:
        return
    with os.scandir(root / folder) as entries:
        for entry in entries:
            if is_hidden(entry.name):
                continue
            if entry.is_dir():
                yield from _below(root, folder / entry.name, above | {here})
            else:
                yield folder / entry.name


def _facts(path: Path) -> Iterator[tuple[str, str, int, int]]:
    """Yield name, path, size and time of change of every file; a broken link has the size -1."""
    if path.is_file():
        facts = path.stat()
        yield "", str(path), facts.st_size, facts.st_mtime_ns
        return
    for name in files_below(path):
        file = path / name
        try:
            facts = file.stat()
        except FileNotFoundError:
            yield str(name), str(file), -1, 0
            continue
        if file.is_file():
            yield str(name), str(file), facts.st_size, facts.st_mtime_ns


@lru_cache(maxsize=4096)  # files that have not changed since are not read again
def _hash(files: tuple[tuple[str, str, int, int], ...]) -> str:
    single = len(files) == 1 and not files[0][0]
    completely = single or sum(size for *_, size, _ in files) <= _READ_COMPLETELY
    digest = hashlib.sha256()
    for name, path, size, _ in files:
        digest.update(f"{name}\0{size}\0".encode("utf-8", "surrogateescape"))
        if completely and size >= 0:
            with open(path, "rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
    return digest.hexdigest()
