"""One thing that must not happen, tried in several ways."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fathometer.errors import FathometerError


@dataclass
class Point:
    """A promise, how often it was tried, and every time that it was broken."""

    promise: str
    tried: int = 0
    broken: list[str] = field(default_factory=list)

    def note(self, kept: bool, words: str) -> None:
        """Count a trial."""
        self.tried += 1
        if not kept:
            self.broken.append(f"{self.promise}: {words}")


class Trap:
    """An object that leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (str(self.mark),)

    def works(self) -> bool:
        """Whether unpickling leaves the mark; it is taken away again."""
        pickle.loads(pickle.dumps(self))
        found = self.mark.is_dir()
        self.mark.rmdir()
        return found


def refused(read: Callable[[], object]) -> str:
    """Empty if it was refused or read in peace, else the error that is no `FathometerError`."""
    try:
        read()
    except FathometerError:
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """With this as the current folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def everything(folder: Path) -> dict[str, int]:
    """Every file and folder below, with the time of its last change."""
    found: Iterable[Path] = folder.rglob("*")
    return {str(path.relative_to(folder)): path.lstat().st_mtime_ns for path in found if not path.is_dir()}
