"""A file that one process holds at a time. The system lifts it when the process ends, however it ends."""

from __future__ import annotations

import errno
import importlib
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fathometer.errors import InputError

OLD = 3600.0  # seconds, after which nobody is at work any more on a file that is not complete
PATIENCE = 0.05  # seconds, since who merely asks about a file has it for a moment
_PAUSE = 0.002

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
        try:
            is_mine = _lock(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        if is_mine is False:
            os.close(descriptor)
            return None
        if is_mine is None or _is_the_file(descriptor, path):
            _held.add(descriptor)
            return Hold(descriptor, is_mine is True, os.getpid())
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
    """Whether a process holds the file, where that can be told."""
    if fcntl is None:
        return False
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    finally:
        os.close(descriptor)
    return False


def remove_abandoned(path: Path) -> None:
    """Remove a file that nobody holds; where there are no locks, one that is old.

    It is locked meanwhile, so that nobody can begin to write what is about to be removed.
    """
    if fcntl is None:
        if _age(path) > OLD:
            path.unlink()
        return
    descriptor = os.open(path, os.O_RDWR)
    try:
        is_mine = _lock(descriptor)
        if (is_mine and _is_the_file(descriptor, path)) or (is_mine is None and _age(path) > OLD):
            path.unlink()
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Whether the open file is ours from now on; none where the file system has no locks."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(_PAUSE)
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:
                raise
            return None
        else:
            return True


def _age(path: Path) -> float:
    """In seconds of the file system, whose clock is not always that of this process."""
    with tempfile.TemporaryFile(dir=path.parent) as fresh:
        return os.fstat(fresh.fileno()).st_mtime - path.stat().st_mtime


def _is_the_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
