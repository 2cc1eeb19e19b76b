"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fathometer.errors import InputError


def check_format(head: Any, schema: str, version: int, path: object, what: str) -> dict[str, Any]:
    """The head of a results file, if it is of this schema and not newer than `version`.

    `what` says what was expected, and who writes it.
    """
    if not isinstance(head, dict) or head.get("schema") != schema:
        raise InputError(f"{path}: not {what}")
    found = head.get("version")
    if not isinstance(found, int) or found > version:
        raise InputError(
            f"{path}: written by a newer fathometer (format {found}, this one reads up to {version}); "
            "update with pip install -U fathometer"
        )
    return head


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
