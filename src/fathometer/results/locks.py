"""One process at a time: a lock file, which the system releases when the process ends, however it ends."""

from __future__ import annotations

import errno
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from fathometer.errors import InputError

TIMEOUT = 0.05  # seconds; another process may hold the file for a moment, only to see whether it is locked
_POLL = 0.002


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold a lock file during the `with` block and remove it at the end; False if another process has it.

    On a file system without locks it always succeeds, with a warning.
    """
    lock = FileLock(path)
    try:
        lock.acquire(timeout=TIMEOUT, poll_interval=_POLL)
    except Timeout:
        yield False
        return
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise InputError(f"{path}: cannot be locked ({error.strerror or error})") from error
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
