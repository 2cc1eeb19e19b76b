"""A file that one process holds at a time. The system lifts it when the process ends, however it ends."""

from __future__ import annotations

import errno
import importlib
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fathometer.errors import InputError

OLD = 3600.0  # seconds, after which nobody is at work any more on a file that is not complete

fcntl: Any
try:
    fcntl = importlib.import_module("fcntl")
except ImportError:  # on Windows
    fcntl = None

_WITHOUT_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)

_held: set[int] = set()


def _let_go() -> None:
    """In a forked process, such as one that reads data ahead: the lock is not to last as long as that."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


class Hold(NamedTuple):
    """A file that is open, and locked where the file system can."""

    descriptor: int
    is_locked: bool
    owner: int

    def release(self) -> None:
        """Let it go; in a forked process that has happened already."""
        if os.getpid() == self.owner:
            _held.discard(self.descriptor)
            os.close(self.descriptor)


def hold(path: Path) -> Hold | None:
    """The file, made if it is not there; none if another process has it, or on Windows."""
    if fcntl is None:
        return None
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
        is_locked = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = True
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:
                os.close(descriptor)
                raise
        if not is_locked or _is_the_file(descriptor, path):
            _held.add(descriptor)
            return Hold(descriptor, is_locked, os.getpid())
        os.close(descriptor)  # whoever held it has removed it: once more, with a new one


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Whether the file is ours for as long as the context lasts. It is removed in the end.

    Where a file system has no locks it always is, with a warning.
    """
    if fcntl is None:
        yield True
        return
    try:
        held = hold(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be claimed ({error.strerror})") from error
    if held is None:
        yield False
        return
    if not held.is_locked:
        warnings.warn(
            f"{path.parent}: the file system has no locks; two processes in it may do the same work",
            stacklevel=4,
        )
    try:
        yield True
    finally:
        if os.getpid() == held.owner:
            path.unlink(missing_ok=True)
        held.release()


def is_locked(path: Path) -> bool:
    """Whether a process holds the file."""
    return _is_held(path) is True


def is_abandoned(path: Path) -> bool:
    """Whether nobody holds a file that is there; where there are no locks, whether it is old."""
    held = _is_held(path)
    return not held if held is not None else time.time() - path.stat().st_mtime > OLD


def _is_held(path: Path) -> bool | None:
    """Whether a process holds the file; none where that cannot be told."""
    if fcntl is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    else:
        return False
    finally:
        os.close(descriptor)


def _is_the_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
