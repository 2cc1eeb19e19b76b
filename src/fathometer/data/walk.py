"""The files below a folder, as every reader of folders sees them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def files_below(root: Path) -> Iterator[PurePosixPath]:
    """Every file below `root`, relative to it, in no order; hidden ones are left out.

    Links are followed, but not in circles. One that leads nowhere is a file: whoever opens it will say so.
    """
    yield from _below(root, PurePosixPath(), frozenset())


def is_hidden(name: str) -> bool:
    """Whether a name is that of a hidden file, or of what an archive of macOS leaves beside the files."""
    return name.startswith(".") or name == "__MACOSX"


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
