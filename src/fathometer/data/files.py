"""Files and folders of data: which files they hold, and a hash of their content."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from fathometer.errors import InputError

_READ_COMPLETELY = 2**28  # bytes; a larger folder is hashed by names and sizes, which takes no reading
_CHUNK = 2**20


class File(NamedTuple):
    """One file of a folder.

    Attributes:
        name: its path relative to the folder; empty for a file that was given itself.
        path: its path.
        size: its size in bytes; -1 for a broken link.
        changed: the time of its last change, in nanoseconds.
    """

    name: str
    path: str
    size: int
    changed: int


def list_files(path: str | Path) -> tuple[File, ...]:
    """Return a file, or every file below a folder, sorted by name.

    Hidden files are left out. Links are followed, but not in circles. A broken link is listed, so that
    whoever opens it can report it.
    """
    path = Path(path)
    try:
        if path.is_file():
            facts = path.stat()
            return (File("", str(path), facts.st_size, facts.st_mtime_ns),)
        return tuple(sorted(_below(path, PurePosixPath(), frozenset())))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def contents_hash(path: str | Path) -> str:
    """Return the SHA-256 of a file, or of the names, sizes and contents of all files in a folder.

    Where the path lies and what it is called is not part of it. Of a folder that holds more than 256 MB the
    names and sizes are hashed, but not the contents; likewise of files that may not be read.
    """
    return hash_files(list_files(path))


def hash_files(files: Sequence[File]) -> str:
    """Return the hash of files that were listed; see `contents_hash`."""
    try:
        return _hash(tuple(files))
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror or error})") from error


def is_hidden(name: str) -> bool:
    """Say whether a file is hidden, or left by macOS when it unpacked an archive."""
    return name.startswith(".") or name == "__MACOSX"


def _below(root: Path, folder: PurePosixPath, above: frozenset[str]) -> Iterator[File]:
    here = os.path.realpath(root / folder)
    if here in above:
        return
    with os.scandir(root / folder) as entries:
        for entry in entries:
            if is_hidden(entry.name):
                continue
            if entry.is_dir():
                yield from _below(root, folder / entry.name, above | {here})
            elif entry.is_file():
                facts = entry.stat()
                yield File(str(folder / entry.name), entry.path, facts.st_size, facts.st_mtime_ns)
            elif entry.is_symlink():
                yield File(str(folder / entry.name), entry.path, -1, 0)


@lru_cache(maxsize=4096)  # files that have not changed since are not read again
def _hash(files: tuple[File, ...]) -> str:
    single = len(files) == 1 and not files[0].name
    completely = single or sum(file.size for file in files) <= _READ_COMPLETELY
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{file.size}\0".encode("utf-8", "surrogateescape"))
        if completely and file.size >= 0:
            try:
                with open(file.path, "rb") as opened:
                    while chunk := opened.read(_CHUNK):
                        digest.update(chunk)
            except PermissionError:
                if single:
                    raise
    return digest.hexdigest()
