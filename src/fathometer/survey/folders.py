"""Where results are kept: a folder here, or anything that fsspec opens. Files appear whole or not at all."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from fathometer.errors import FathometerError, InputError
from fathometer.files import complete_file
from fathometer.survey.locks import is_locked, locked

OLD = 3600.0  # seconds, after which nobody is at work any more on a file that is not complete


class FolderError(FathometerError):
    """The results folder cannot be reached, or not be written."""


class Folder(ABC):
    """Files by name, with `/` for folders in it. A file that is not there reads as none."""

    @abstractmethod
    def read(self, name: str) -> str | None:
        """The text of a file; an `IsADirectoryError` if it is none."""

    @abstractmethod
    def has(self, name: str) -> bool:
        """Whether there is something of that name."""

    @abstractmethod
    def write(self, name: str, text: str) -> None:
        """A file, which appears once it is complete, and is there to stay when this returns."""

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
    def claimed(self, name: str) -> AbstractContextManager[bool]:
        """A context that is true if nobody else is at work on `name`, and false otherwise."""

    @abstractmethod
    def is_claimed(self, name: str) -> bool:
        """Whether somebody is at work on `name`, where that can be seen."""

    @abstractmethod
    def tidy(self) -> None:
        """Remove what a writer that was killed has left."""

    def local(self, name: str) -> Path | None:
        """The path of a file, if it is on this machine."""
        del name
        return None


class LocalFolder(Folder):
    """A folder on this machine, or one that is mounted. A claim is a lock on a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, name: str) -> str | None:
        """The text of a file."""
        try:
            return (self.path / name).read_text("utf-8", errors="replace")
        except FileNotFoundError:
            return None
        except IsADirectoryError:
            raise
        except OSError as error:
            raise FolderError(f"{self.path / name}: cannot be read ({error.strerror})") from error

    def has(self, name: str) -> bool:
        """Whether there is something of that name."""
        return (self.path / name).exists()

    def write(self, name: str, text: str) -> None:
        """A file, which appears once it is complete."""
        path = self._ready(name)
        try:
            with complete_file(path, durable=True) as part:
                part.write_text(text, "utf-8")
        except InputError as error:
            raise FolderError(str(error)) from error

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

    def claimed(self, name: str) -> AbstractContextManager[bool]:
        """Whether nobody else is at work on it."""
        return locked(self._ready(name))

    def is_claimed(self, name: str) -> bool:
        """Whether somebody is at work on it."""
        return is_locked(self.path / name)

    def tidy(self) -> None:
        """Remove what a writer that was killed has left."""
        for folder in (self.path, self.path / "failed", self.path / "pending"):
            for part in folder.glob(".*.part.*"):
                with suppress(OSError):
                    if time.time() - part.stat().st_mtime > OLD:
                        part.unlink()

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
        from fathometer.survey.remote_folder import RemoteFolder

        return RemoteFolder(text)
    local = Path(text.removeprefix("file://")).expanduser()
    if local.exists() and not local.is_dir():
        raise InputError(f"{local}: expected a folder for results, got a file; give another name")
    return LocalFolder(local)


@contextmanager
def unclaimed() -> Iterator[bool]:
    """What stands for a claim where there are none."""
    yield True
