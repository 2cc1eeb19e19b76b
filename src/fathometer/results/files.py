"""Files: written completely or not at all, locked by one process at a time, JSON as its standard has it."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from fathometer.errors import FathometerError, InputError

_T = TypeVar("_T")

STALE_AFTER = 3600.0  # seconds, after which nobody is still writing a file that is not complete
_DIGITS = 12  # of the random part of a temporary name, so that two writers have two files
_PART = re.compile(rf"\.(.*)\.[0-9a-f]{{{_DIGITS}}}\.part.*")
PROBE_BYTES = 4096  # bytes that are written to see whether there is space
_SCHEMA = re.compile(r"fathometer\.[a-z_-]{1,40}")
_SURROGATE = r"\ud"  # how a lone surrogate begins in JSON; whole characters may, too
_LOCK_TIMEOUT = 0.05  # seconds; another process may hold a lock for a moment, only to test it


class StoreError(FathometerError):
    """A file or a folder of results cannot be reached, read or written."""


def check_format(head: Any, schema: str, version: int, path: object, what: str) -> dict[str, Any]:
    """Return the head of a results file if it has this schema and is not newer than `version`.

    `what` says what was expected, and what writes it.
    """
    if not isinstance(head, dict) or head.get("schema") != schema:
        other = head.get("schema") if isinstance(head, dict) else None
        said = f"; the file calls itself {other}" if _SCHEMA.fullmatch(str(other)) else ""
        raise InputError(f"{path}: not {what}{said}")
    found = head.get("version")
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise InputError(f"{path}: broken, unknown format version {found!r}")
    if found > version:
        raise InputError(
            f"{path}: written by a newer fathometer (format {found}, this one reads up to {version}); "
            "update with pip install -U fathometer"
        )
    return head


@contextmanager
def complete_file(path: Path, *, keep: bool = True, durable: bool = False) -> Iterator[Path]:
    """Give a temporary path to write to and move it to `path` at the end; nothing is left of a failure.

    With `keep=False` nothing is left at all: a trial. With `durable` the file is on the disk when this
    returns and survives a loss of power; that takes some 10 ms, where the rest takes less than one.
    """
    part = path.with_name(f".{path.stem}.{uuid.uuid4().hex[:_DIGITS]}.part{path.suffix}")
    try:
        yield part
        if durable:
            _flush(part)
        if keep:
            part.replace(path)
            if durable and os.name == "posix":  # elsewhere a folder cannot be flushed
                _flush(path.parent)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def save_json(path: str | Path, text: str) -> Path:
    """Write a `.json` file, which appears once it is complete."""
    path = Path(path)
    if path.suffix.lower() != ".json":
        raise InputError(f"{path.name}: expected a name that ends in .json")
    with complete_file(path) as part:
        part.write_text(text, "utf-8")
    return path


def try_writing(path: Path) -> None:
    """Write a little and remove it again: a full disk still accepts new names, but no contents."""
    with complete_file(path, keep=False, durable=True) as probe:
        probe.write_bytes(bytes(PROBE_BYTES))


def leftovers(folder: Path, path: Path | None = None) -> list[Path]:
    """Return the temporary files that killed writers have left in a folder: of all files, or of one."""
    found = ((file, _PART.fullmatch(file.name)) for file in folder.glob(".*.part*"))
    return sorted(file for file, part in found if part and (path is None or part[1] == path.stem))


def remove_leftovers(folder: Path, path: Path | None = None, *, stale_after: float = STALE_AFTER) -> None:
    """Remove what `complete_file` left of writers that were killed: of all files, or of one.

    A file counts as abandoned if it was not written for `stale_after` seconds; a caller that holds the file's
    lock may pass 0.
    """
    for part in leftovers(folder, path):
        with suppress(OSError):
            if time.time() - part.stat().st_mtime >= stale_after:
                part.unlink()


def _flush(path: Path) -> None:
    """Write a file, or the names in a folder, from the memory of the system to the disk."""
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that cannot do it
            raise
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold a lock file during the `with` block and remove it at the end; False if another process has it.

    On a file system without locks it always succeeds, with a warning.
    """
    lock = FileLock(path)
    try:
        lock.acquire(timeout=_LOCK_TIMEOUT, poll_interval=0.002)
    except Timeout:
        yield False
        return
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise StoreError(f"{path}: cannot be locked ({error.strerror or error})") from error
        warnings.warn(
            f"{path.parent}: the file system has no locks; two processes may do the same work", stacklevel=4
        )
    try:
        yield True
    finally:
        with suppress(OSError):  # on Windows a file that is open cannot be removed; filelock does it there
            path.unlink()
        lock.release()


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock file."""
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except (Timeout, OSError):
        return True
    lock.release()
    return False


def strict_json(text: str | bytes) -> Any:
    r"""Parse JSON. `NaN` and `Infinity` are refused: the standard does not have them.

    Lone surrogates, which no table and no page can hold, become question marks.

    Raises:
        ValueError: if it is not JSON; a `RecursionError` if it is too deep.

    Example:
        >>> strict_json(r'{"name": "caf\udce9", "count": 1e3}')
        {'name': 'caf?', 'count': 1000.0}
    """
    found = json.loads(text, parse_constant=_refuse_constant)
    if _SURROGATE in (text if isinstance(text, str) else text.decode()).lower():
        found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    return found


def parse_json(content: str | bytes, name: str, what: str) -> Any:
    """Parse the content of a file; errors call it `name`, and say that it is not `what`."""
    try:
        return strict_json(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: broken, or not {what} ({error})") from error


def assembled(name: str, assemble: Callable[[], _T]) -> _T:
    """Return what `assemble` makes of the parts of a file; if they do not fit, an error calls it `name`."""
    try:
        return assemble()
    except (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise InputError(f"{name}: broken, the parts do not fit ({error})") from error


def as_json_number(number: Any) -> Any:
    """Return a number as JSON can hold it, infinities and NaN as text; other values stay as they are.

    Example:
        >>> as_json_number(0.5), as_json_number(float("-inf"))
        (0.5, '-inf')
    """
    return number if not isinstance(number, float) or math.isfinite(number) else str(number)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")
