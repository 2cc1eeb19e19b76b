"""A file that one process holds at a time. The system lifts it when the process ends, however it ends."""

from __future__ import annotations

import errno
import importlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fathometer.errors import InputError

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


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Whether the file is ours for as long as the context lasts. It is removed in the end.

    Where a file system has no locks it always is, with a warning.
    """
    if fcntl is None:
        yield True
        return
    descriptor = _take(path)
    if descriptor is None:
        yield False
        return
    owner = os.getpid()
    _held.add(descriptor)
    try:
        yield True
    finally:
        if os.getpid() == owner:
            path.unlink(missing_ok=True)
            _held.discard(descriptor)
            os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether a process holds the file."""
    if fcntl is None:
        return False
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    else:
        return False
    finally:
        os.close(descriptor)


def _take(path: Path) -> int | None:
    """The descriptor of the locked file; none if another process has it."""
    while True:
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR)
        except OSError as error:
            raise InputError(f"{path}: cannot be claimed ({error.strerror})") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as error:
            if error.errno in _WITHOUT_LOCKS:
                warnings.warn(
                    f"{path.parent}: the file system has no locks; two surveys in it may measure the same",
                    stacklevel=5,
                )
                return descriptor
            os.close(descriptor)
            raise InputError(f"{path}: cannot be claimed ({error.strerror})") from error
        if _is_the_file(descriptor, path):
            return descriptor
        os.close(descriptor)  # whoever held it has removed it: once more, with a new one


def _is_the_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
