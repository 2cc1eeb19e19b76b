"""A small disk that can be filled and made read-only; or what comes near it where nothing can be mounted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_SIZE = 8 * 2**20  # bytes
_PAGE = 4096
_NOBODY = 65534


class Disk:
    """A `tmpfs`, if one can be mounted; else a folder whose processes are limited instead."""

    def __init__(self, path: Path, is_mounted: bool) -> None:
        self.path, self.is_mounted = path, is_mounted
        self._filler = path / ".filler"

    @contextmanager
    def nearly_full(self, free: int) -> Iterator[dict[str, Any]]:
        """With room for so many bytes, rounded to pages; what to tell the process."""
        if not self.is_mounted:
            yield {"full_past": max(free, _PAGE)}
            return
        with self._filler.open("wb", buffering=0) as file:
            with suppress(OSError):
                while file.write(bytes(_PAGE)):
                    pass
            file.truncate(max(0, file.tell() // _PAGE * _PAGE - free // _PAGE * _PAGE))
        try:
            yield {}
        finally:
            self._filler.unlink()

    @contextmanager
    def read_only(self) -> Iterator[dict[str, Any]]:
        """Read-only; what to tell the process."""
        if self.is_mounted:
            _mount("-o", "remount,ro", str(self.path))
            try:
                yield {}
            finally:
                _mount("-o", "remount,rw", str(self.path))
            return
        folders = [self.path, *(path for path in self.path.rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        try:
            yield {"user": _NOBODY} if os.getuid() == 0 else {}
        finally:
            for folder in folders:
                folder.chmod(0o755)


@contextmanager
def small_disk(path: Path) -> Iterator[Disk]:
    """A disk in the place of an empty folder."""
    is_mounted = _mount("-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(path))
    try:
        yield Disk(path, is_mounted)
    finally:
        if is_mounted:
            subprocess.run(["umount", str(path)], check=True)


def _mount(*arguments: str) -> bool:
    try:
        return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0
    except OSError:
        return False
