"""Folders of results: local ones, and every URL that fsspec opens (`s3://bucket/results`, `memory://results`)."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import fsspec
from fsspec.implementations.local import LocalFileSystem

from fathometer.errors import InputError, first_line
from fathometer.results.files import (
    PROBE_BYTES,
    StoreError,
    complete_file,
    is_locked,
    leftovers,
    locked,
    remove_leftovers,
    try_writing,
)

Place: TypeAlias = str | Path

_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "oci", "memory"}


class Store:
    """Files of a folder by name, with `/` for subfolders. A missing file is read as None.

    A file appears when it is complete: a local one is written under a temporary name, flushed to the disk and
    renamed; an object store shows a file when its upload has ended.

    Args:
        place: a path, or a URL that fsspec opens.

    Example:
        >>> store = Store("memory://example")
        >>> store.write("a.json", b"{}")
        >>> store.names(), store.read("a.json"), store.read("b.json")
        (['a.json'], b'{}', None)
    """

    def __init__(self, place: Place) -> None:
        try:
            # Other processes write to the same place, so what it holds is never taken from a cache.
            self._files, root = fsspec.core.url_to_fs(os.path.expanduser(place), use_listings_cache=False)
        except (ImportError, ValueError) as error:
            raise InputError(f"{place}: cannot be opened ({first_line(error)})") from error
        text = str(place)
        self.place = text if text.endswith("://") else text.rstrip("/") or "/"
        self._root = root.rstrip("/")
        self.local = Path(root) if isinstance(self._files, LocalFileSystem) else None
        protocol = self._files.protocol
        self._puts_are_atomic = bool(
            _OBJECT_STORES & ({protocol} if isinstance(protocol, str) else {*protocol})
        )

    def __str__(self) -> str:
        return self.place

    def path(self, name: str = "") -> str:
        """Return the path or URL of a file, as it was given."""
        return f"{self.place.removesuffix('/')}/{name}" if name else self.place

    def real_path(self, name: str = "") -> str:
        """Return what identifies a file: of a local file its path without links."""
        inner = self._inner(name)
        return inner if self.local is None else os.path.realpath(inner)

    def exists(self, name: str = "") -> bool:
        """Say whether a file or folder of that name exists."""
        return self._type(name) is not None

    def is_folder(self) -> bool:
        """Say whether the place is a folder (or a prefix of an object store) and not a file."""
        return self._type("") == "directory"

    def read(self, name: str = "") -> bytes | None:
        """Return the content of a file, or None if there is none."""
        try:
            with self._reported("read", name):
                return bytes(self._files.cat_file(self._inner(name)))
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes, *, durable: bool = True) -> None:
        """Write a file, which appears complete or not at all; with `durable` it survives a loss of power."""
        if self.local is not None:
            self._make_folder(name)
            with self._reported("written", name), complete_file(self.local / name, durable=durable) as part:
                part.write_bytes(content)
            return
        try:
            with self._reported("written", name):
                if self._puts_are_atomic:
                    self._files.pipe_file(self._inner(name), content)
                else:
                    self._write_and_rename(name, content)
        except FileNotFoundError as error:  # such as a missing bucket
            raise StoreError(f"{self.path(name)}: cannot be written ({first_line(error)})") from error

    def try_writing(self, name: str) -> None:
        """Write a little under that name and remove it again: a full disk still accepts new names."""
        if self.local is None:
            self.write(name, bytes(PROBE_BYTES))
            self.remove(name)
        else:
            self._make_folder(name)
            path = self.local / name
            remove_leftovers(path.parent, path)
            try_writing(path)

    def move(self, name: str, to: str) -> None:
        """Rename a file, if it exists."""
        self._make_folder(to)
        with suppress(FileNotFoundError), self._reported("moved", name):
            if self.local is not None:
                (self.local / name).replace(self.local / to)
            else:
                self._files.mv(self._inner(name), self._inner(to))

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        with suppress(FileNotFoundError), self._reported("removed", name):
            self._files.rm_file(self._inner(name))

    def names(self, below: str = "", endings: tuple[str, ...] = (".json",)) -> list[str]:
        """Return the sorted names of files in the folder or in a subfolder; hidden files are left out."""
        try:
            with self._reported("read", below):
                entries: list[dict[str, Any]] = self._files.ls(self._inner(below), detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        names = (entry["name"].rstrip("/").rpartition("/")[2] for entry in entries)
        return sorted(name for name in names if name.endswith(endings) and not name.startswith("."))

    @contextmanager
    def lock(self, name: str) -> Iterator[bool]:
        """Yield whether the lock is ours; it always is where there are no locks, as in an object store."""
        if self.local is None:
            yield True
            return
        self._make_folder(name)
        with ExitStack() as stack:
            with self._reported("locked", name):
                mine = stack.enter_context(locked(self.local / name))
            yield mine

    def is_locked(self, name: str) -> bool:
        """Say whether a process on this machine holds the lock."""
        return self.local is not None and is_locked(self.local / name)

    def leftovers(self, below: str = "") -> list[str]:
        """Return the names of temporary files in a local folder or subfolder; killed writers leave some."""
        return [] if self.local is None else [file.name for file in leftovers(self.local / below)]

    def _type(self, name: str) -> str | None:
        try:
            with self._reported("reached", name):
                return str(self._files.info(self._inner(name))["type"])
        except FileNotFoundError:
            return None

    def _inner(self, name: str) -> str:
        """Return the path that the file system expects."""
        return f"{self._root}/{name}".rstrip("/") or "/"

    def _make_folder(self, name: str) -> None:
        if self._puts_are_atomic:  # an object store has no folders
            return
        with self._reported("written", name):
            self._files.makedirs(self._inner(name).rpartition("/")[0] or "/", exist_ok=True)

    def _write_and_rename(self, name: str, content: bytes) -> None:
        self._make_folder(name)
        part = self._inner(f".{uuid.uuid4().hex}.part")
        self._files.pipe_file(part, content)
        self._files.mv(part, self._inner(name))

    @contextmanager
    def _reported(self, action: str, name: str) -> Iterator[None]:
        """Turn the many errors of file systems into one; a missing file is left to the caller."""
        try:
            yield
        except (FileNotFoundError, NotADirectoryError, StoreError):
            raise
        except IsADirectoryError as error:
            raise InputError(f"{self.path(name)}: expected a file, got a folder") from error
        except Exception as error:  # every store has errors of its own
            reason = getattr(error, "strerror", None) or first_line(error)
            raise StoreError(f"{self.path(name)}: cannot be {action} ({reason})") from error


def is_url(place: Place) -> bool:
    """Say whether a place is a URL and not a path on this machine.

    Example:
        >>> is_url("s3://bucket/results"), is_url("results/"), is_url("file:///results")
        (True, False, False)
    """
    return "://" in str(place) and not str(place).startswith(("file://", "local://"))


@contextmanager
def local_copy(place: Place) -> Iterator[Path]:
    """Yield a local path of a file or folder: the path itself, or a temporary copy of what a URL names."""
    store = Store(place)
    if store.local is not None:
        yield store.local if "://" in str(place) else Path(place).expanduser()
        return
    if not store.exists():
        raise InputError(f"{place}: no such file or folder")
    with tempfile.TemporaryDirectory() as folder:
        name = store.place.rpartition("/")[2] or "results"
        store._files.get(store._inner(""), f"{folder}/{name}", recursive=True)
        yield Path(folder, name)
