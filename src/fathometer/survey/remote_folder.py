"""A results folder that fsspec opens: on an object store, another machine, in memory."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime
from typing import Any, TypeVar

from fathometer.errors import FathometerError, InputError, MissingExtraError, first_line
from fathometer.results.files import STALE_AFTER
from fathometer.survey.folders import Folder, FolderError

_T = TypeVar("_T")

_PROBE = 4096  # bytes
_PAUSES = (0.5, 2.0, 5.0)  # seconds before each further attempt
_HOPELESS = (PermissionError, NotImplementedError, TypeError, ValueError)
_WHOLE_PUTS = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "oci", "memory"}


class RemoteFolder(Folder):
    """A folder that fsspec opens: `s3://bucket/results`, `memory://results`.

    What fails is tried again a few times. There are no claims: two surveys may do the same work twice, and
    the later one replaces the file of the earlier one by an equal one.

    On an object store a file appears with the end of its upload. Elsewhere it is written under another name
    and renamed, which is whole or not at all where the file system renames so (local, SFTP, HDFS, SMB).
    """

    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ImportError as error:
            raise MissingExtraError("fsspec", "ray", f"the results folder {url}") from error
        try:
            self._files, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise InputError(f"{url}: cannot be opened ({error})") from error
        self._url = url.rstrip("/")
        self._root = self._root.rstrip("/")
        protocol = self._files.protocol
        names = {protocol} if isinstance(protocol, str) else set(protocol)
        self._puts_whole = bool(names & _WHOLE_PUTS)

    def read(self, name: str) -> str | None:
        """The text of a file."""
        try:
            content: bytes = self._tried(lambda: self._files.cat_file(self._path(name)))
        except FileNotFoundError:
            return None
        return content.decode("utf-8", errors="replace")

    def has(self, name: str) -> bool:
        """Whether there is something of that name."""
        try:
            self._tried(lambda: self._files.info(self._path(name)))
        except FileNotFoundError:
            return False
        return True

    def write(self, name: str, text: str) -> None:
        """A file, which appears once it is complete."""
        path, content = self._path(name), text.encode()
        if self._puts_whole:
            self._tried(lambda: self._files.pipe_file(path, content))
            return
        part = self._path(_new_part())
        for file in (path, part):
            self._tried(lambda file=file: self._make_folder_of(file))  # type: ignore[misc]
        try:
            self._tried(lambda: self._put(part, content, path))
        except FathometerError:
            with suppress(Exception):
                self._files.rm_file(part)
            raise

    def try_writing(self) -> None:
        """An error if nothing can be written."""
        name = _new_part()
        self.write(name, " " * _PROBE)
        self.remove(name)

    def move(self, name: str, to: str) -> None:
        """Rename a file; one that is not there is left so."""
        with suppress(FileNotFoundError):
            self._tried(lambda: self._make_folder_of(self._path(to)))
            self._tried(lambda: self._files.mv(self._path(name), self._path(to)))

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError):
            self._tried(lambda: self._files.rm_file(self._path(name)))

    def names(self, below: str = "", ending: str = ".json") -> list[str]:
        """The names of files, sorted."""
        names = (entry["name"].rpartition("/")[2] for entry in self._entries(below))
        return sorted(name for name in names if name.endswith(ending) and not name.startswith("."))

    def claimed(self, name: str) -> AbstractContextManager[bool]:
        """Whether nobody else is at work on it."""
        del name
        return nullcontext(True)

    def is_claimed(self, name: str) -> bool:
        """That cannot be seen."""
        del name
        return False

    def tidy(self) -> None:
        """Remove what a writer that was killed has left."""
        parts = self._parts()
        if not parts:
            return
        fresh = _new_part()
        self.write(fresh, "")
        now = self._parts().get(fresh)  # the clock is that of the store, which may differ from ours
        self.remove(fresh)
        for name, written in parts.items():
            if now is not None and written is not None and now - written > STALE_AFTER:
                self.remove(name)

    def __str__(self) -> str:
        return self._url

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}".rstrip("/")

    def _parts(self) -> dict[str, float | None]:
        """What is being written, or was about to be, and since when."""
        entries = {entry["name"].rpartition("/")[2]: _time(entry) for entry in self._entries("pending")}
        return {f"pending/{name}": time for name, time in entries.items() if name.endswith(".part")}

    def _make_folder_of(self, path: str) -> None:
        self._files.makedirs(path.rpartition("/")[0], exist_ok=True)

    def _put(self, part: str, content: bytes, path: str) -> None:
        self._files.pipe_file(part, content)
        self._files.mv(part, path)

    def _entries(self, below: str) -> list[dict[str, Any]]:
        def found() -> list[dict[str, Any]]:
            self._files.invalidate_cache()
            return list(self._files.ls(self._path(below), detail=True))

        try:
            return self._tried(found)
        except FileNotFoundError:
            return []

    def _tried(self, action: Callable[[], _T]) -> _T:
        """What the action gives, after some attempts if need be."""
        for pause in (*_PAUSES, None):
            try:
                return action()
            except (FileNotFoundError, IsADirectoryError):
                raise
            except Exception as error:  # each store has errors of its own
                if pause is None or isinstance(error, _HOPELESS):
                    reason = f"{type(error).__name__}: {first_line(error)}"
                    raise FolderError(f"{self._url}: the results folder does not work ({reason})") from error
                time.sleep(pause)
        raise AssertionError


def _new_part() -> str:
    return f"pending/{uuid.uuid4().hex}.part"


def _time(entry: dict[str, Any]) -> float | None:
    """When a file was written, in seconds; none where the store does not say."""
    for key in ("mtime", "LastModified", "last_modified", "updated", "created"):
        value = entry.get(key)
        if isinstance(value, int | float):
            return value
        if isinstance(value, datetime):
            return value.timestamp()
    return None
