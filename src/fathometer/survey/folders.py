"""Where results are kept: a folder here, or anything that fsspec opens. Files appear whole or not at all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from fathometer.errors import FathometerError, InputError
from fathometer.results.files import complete_file, remove_leftovers, try_writing
from fathometer.results.locks import is_locked, locked


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
    def try_writing(self) -> None:
        """An error if nothing can be written; nothing is left of it."""

    @abstractmethod
    def move(self, name: str, to: str) -> None:
        """Rename a file; one that is not there is left so."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    @abstractmethod
    def names(self, below: str = "", ending: str = ".json") -> list[str]:
        """The names of files in the folder or in one in it, sorted, without `below`."""

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
        with suppress(FileNotFoundError), self._told(name, "read"):
            return (self.path / name).read_text("utf-8", errors="replace")
        return None

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

    def try_writing(self) -> None:
        """An error if nothing can be written."""
        try:
            try_writing(self._ready("pending/probe"))
        except InputError as error:
            raise FolderError(str(error)) from error

    def move(self, name: str, to: str) -> None:
        """Rename a file; one that is not there is left so."""
        place = self._ready(to)
        with suppress(FileNotFoundError), self._told(name, "moved"):
            (self.path / name).replace(place)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError), self._told(name, "removed"):
            (self.path / name).unlink()

    def names(self, below: str = "", ending: str = ".json") -> list[str]:
        """The names of files, sorted."""
        files = (self.path / below).glob(f"*{ending}")
        return sorted(file.name for file in files if not file.name.startswith("."))

    @contextmanager
    def claimed(self, name: str) -> Iterator[bool]:
        """Whether nobody else is at work on it."""
        with ExitStack() as stack:
            try:
                mine = stack.enter_context(locked(self._ready(name)))
            except InputError as error:
                raise FolderError(str(error)) from error
            yield mine

    def is_claimed(self, name: str) -> bool:
        """Whether somebody is at work on it."""
        return is_locked(self.path / name)

    def tidy(self) -> None:
        """Remove what a writer that was killed has left."""
        for folder in (self.path, self.path / "failed", self.path / "pending"):
            remove_leftovers(folder)

    def local(self, name: str) -> Path | None:
        """The path of a file; its folder is made."""
        return self._ready(name)

    def _ready(self, name: str) -> Path:
        path = self.path / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FolderError(f"{path.parent}: cannot make the folder ({error.strerror})") from error
        return path

    @contextmanager
    def _told(self, name: str, what: str) -> Iterator[None]:
        """What goes wrong with a file, as an error of the folder; that it is not there, or none, is none."""
        try:
            yield
        except (FileNotFoundError, IsADirectoryError):
            raise
        except OSError as error:
            raise FolderError(f"{self.path / name}: cannot be {what} ({error.strerror})") from error

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
