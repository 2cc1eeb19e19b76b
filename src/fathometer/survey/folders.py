"""Where results are kept: a folder here, or anything that fsspec opens. Files appear whole or not at all."""

from __future__ import annotations

import importlib
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fathometer.errors import InputError, MissingExtraError
from fathometer.files import complete_file

fcntl: Any
try:
    fcntl = importlib.import_module("fcntl")
except ImportError:  # on Windows
    fcntl = None


class Folder(ABC):
    """Files by name, with `/` for folders in it. A file that is not there reads as none."""

    @abstractmethod
    def read(self, name: str) -> str | None:
        """The text of a file."""

    @abstractmethod
    def has(self, name: str) -> bool:
        """Whether there is such a file."""

    @abstractmethod
    def write(self, name: str, text: str) -> None:
        """A file, which appears once it is complete."""

    @abstractmethod
    def move(self, name: str, to: str) -> None:
        """Rename a file; one that is not there is left so."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    @abstractmethod
    def names(self, below: str = "") -> list[str]:
        """The names of the `.json` files in the folder or in one in it, sorted, without `below`."""

    @abstractmethod
    def claimed(self, name: str) -> Any:
        """A context that is true if nobody else is at work on `name`, and false otherwise."""

    def local(self, name: str) -> Path | None:
        """The path of a file, if it is on this machine."""
        del name
        return None


class LocalFolder(Folder):
    """A folder on this machine, or one that is mounted.

    A claim is a lock on a file (`flock`): the system lifts it when a process ends, however it ends.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, name: str) -> str | None:
        """The text of a file."""
        try:
            return (self.path / name).read_text("utf-8", errors="replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{self.path / name}: cannot be read ({error.strerror})") from error

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.path / name).is_file()

    def write(self, name: str, text: str) -> None:
        """A file, which appears once it is complete."""
        path = self._ready(name)
        with complete_file(path) as part:
            part.write_text(text, "utf-8")

    def move(self, name: str, to: str) -> None:
        """Rename a file; one that is not there is left so."""
        with suppress(FileNotFoundError):
            (self.path / name).replace(self._ready(to))

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self.path / name).unlink(missing_ok=True)

    def names(self, below: str = "") -> list[str]:
        """The names of the `.json` files, sorted."""
        files = (self.path / below).glob("*.json")
        return sorted(file.name for file in files if not file.name.startswith("."))

    @contextmanager
    def claimed(self, name: str) -> Iterator[bool]:
        """Whether nobody else is at work on it."""
        path = self._ready(name)
        if fcntl is None:
            yield True
            return
        while True:
            lock = os.open(path, os.O_CREAT | os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.exists() and os.fstat(lock).st_ino == path.stat().st_ino:
                    break
            except BlockingIOError:
                os.close(lock)
                yield False
                return
            except OSError:  # a file system without locks, or the file went meanwhile
                if path.exists():
                    break
            os.close(lock)  # whoever held it has removed it: once more, with a new one
        try:
            yield True
        finally:
            path.unlink(missing_ok=True)
            os.close(lock)

    def local(self, name: str) -> Path | None:
        """The path of a file; its folder is made."""
        return self._ready(name)

    def _ready(self, name: str) -> Path:
        path = self.path / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{path.parent}: cannot make the folder ({error.strerror})") from error
        return path

    def __str__(self) -> str:
        return str(self.path)


class RemoteFolder(Folder):
    """A folder that fsspec opens: `s3://bucket/results`, `memory://results`.

    There are no claims: two surveys may do the same work twice, and the later one replaces the file of the
    earlier one by an equal one.
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

    def read(self, name: str) -> str | None:
        """The text of a file."""
        try:
            content: bytes = self._files.cat_file(f"{self._root}/{name}")
        except FileNotFoundError:
            return None
        return content.decode("utf-8", errors="replace")

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return bool(self._files.exists(f"{self._root}/{name}"))

    def write(self, name: str, text: str) -> None:
        """A file, which appears once it is complete."""
        path = f"{self._root}/{name}"
        part = f"{self._root}/pending/{uuid.uuid4().hex}.part"
        for folder in (path, part):
            self._files.makedirs(folder.rpartition("/")[0], exist_ok=True)
        self._files.pipe_file(part, text.encode())
        self._files.mv(part, path)

    def move(self, name: str, to: str) -> None:
        """Rename a file; one that is not there is left so."""
        with suppress(FileNotFoundError):
            self._files.makedirs(f"{self._root}/{to}".rpartition("/")[0], exist_ok=True)
            self._files.mv(f"{self._root}/{name}", f"{self._root}/{to}")

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError):
            self._files.rm_file(f"{self._root}/{name}")

    def names(self, below: str = "") -> list[str]:
        """The names of the `.json` files, sorted."""
        folder = f"{self._root}/{below}".rstrip("/")
        try:
            self._files.invalidate_cache()
            found = self._files.ls(folder, detail=False)
        except FileNotFoundError:
            return []
        names = [str(entry).rpartition("/")[2] for entry in found]
        return sorted(name for name in names if name.endswith(".json"))

    @contextmanager
    def claimed(self, name: str) -> Iterator[bool]:
        """Whether nobody else is at work on it."""
        del name
        yield True

    def __str__(self) -> str:
        return self._url


def open_folder(path: str | Path) -> Folder:
    """The folder at a path, or at a URL that fsspec knows.

    Example:
        >>> folder = open_folder("memory://example")
        >>> folder.write("a.json", "{}")
        >>> folder.names(), folder.read("a.json"), folder.read("b.json")
        (['a.json'], '{}', None)
    """
    text = str(path)
    if "://" in text and not text.startswith("file://"):
        return RemoteFolder(text)
    local = Path(text.removeprefix("file://")).expanduser()
    if local.exists() and not local.is_dir():
        raise InputError(f"{local}: expected a folder for results, got a file; give another name")
    return LocalFolder(local)
