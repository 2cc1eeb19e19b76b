"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fathometer.errors import InputError


@contextmanager
def complete_file(path: Path, *, keep: bool = True) -> Iterator[Path]:
    """A path beside `path` to write to, put in its place at the end; nothing is left of a failure.

    With `keep=False` nothing is left at all: a trial.
    """
    part = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        yield part
        if keep:
            part.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
