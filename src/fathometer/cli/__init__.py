"""The command `fathometer`: one file per command, imported when the command is called.

Only light modules are imported here and at the top of the commands, so that help appears at once.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any, NoReturn

from fathometer.errors import FathometerError, InputError, is_out_of_memory

SETTINGS = SimpleNamespace(verbose=False, debug=False)
"""The options `--verbose` and `--debug`, which every command has."""
FLAGS: dict[str, str] = {}
"""The flags of the running command by parameter: `allow_mismatch` → `--allow-mismatch`."""

_MAX_SECONDS_TO_HANDLE = 1.5  # Ctrl-C
_WARNED: set[str] = set()  # what the running command has said
_HOW_TO_RESUME: list[Callable[[], str]] = []  # of the running command; empty text if it cannot resume


class _ResumableInterruptError(FathometerError):
    """The command was interrupted, and can resume; the message says how."""


@contextmanager
def resumable(
    how: str = "", can_resume: Callable[[], bool] = lambda: True, *, force: bool = False
) -> Iterator[None]:
    """Let Ctrl-C say how to resume, if that is possible when it comes; `--force` would start again."""
    how = how or f"Run the same command {'without --force' if force else 'again'} to resume."
    _HOW_TO_RESUME.append(lambda: how if can_resume() else "")
    try:
        yield
    except KeyboardInterrupt:
        if can_resume():
            raise _ResumableInterruptError(how) from None
        raise
    finally:
        _HOW_TO_RESUME.pop()


def main() -> None:
    """Run the command `fathometer`."""

    def run() -> None:
        from fathometer.cli.app import app

        app()

    run_app(run)


def run_app(app: Callable[[], Any]) -> None:
    """Run a command line: an expected error is one line on stderr and exit code 2, Ctrl-C exit code 130."""
    SETTINGS.verbose = SETTINGS.debug = False
    _WARNED.clear()
    interrupts: list[int] = []

    def interrupt(number: int, _: object) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    warnings.showwarning = _warn  # type: ignore[assignment]  # file and line of code are not needed
    in_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, interrupt) if in_main_thread else None
    try:
        with _exit_if_ignored(interrupts) if in_main_thread else nullcontext():
            app()
    except BaseException as error:
        if isinstance(error, _ResumableInterruptError):
            _end_interrupted(f"Interrupted. {error}")
        if interrupts or isinstance(error, KeyboardInterrupt):  # a library may raise an error of its own then
            _end_interrupted("Interrupted.")
        if isinstance(error, SystemExit):
            raise
        _fail(error)
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


@contextmanager
def _exit_if_ignored(interrupts: list[int]) -> Iterator[None]:
    """End the process if Ctrl-C has no effect, because the main thread is inside a long call of a C library.

    Python handles signals between its own instructions, and one layer of a language model can take longer
    than anybody waits. The file descriptor learns of a signal when it arrives. Files that are being written
    are as safe as from `kill -9`.
    """
    ours, pythons = socket.socketpair()
    pythons.setblocking(False)
    before = signal.set_wakeup_fd(pythons.fileno(), warn_on_full_buffer=False)

    def watch() -> None:
        while (number := ours.recv(1)) not in (b"", bytes([signal.SIGINT])):
            pass
        if number and not is_over.wait(_MAX_SECONDS_TO_HANDLE) and not interrupts:
            from fathometer.progress import Terminal

            Terminal(stderr=True).show_cursor()  # which a progress bar has hidden
            how = _HOW_TO_RESUME[-1]() if _HOW_TO_RESUME else ""
            _print_error(f"\nInterrupted. {how}".rstrip(" "))
            os._exit(130)

    is_over, watcher = threading.Event(), threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        signal.set_wakeup_fd(before)
        pythons.close()  # which ends the thread
        watcher.join()
        ours.close()


def _end_interrupted(message: str) -> NoReturn:
    """Exit at once: all files are closed, and a thread inside a long computation is not waited for."""
    _print_error(message)
    if threads := sys.modules.get("fathometer.threads"):
        atexit.register(_skip_shutdown, threads.are_abandoned)
    sys.exit(130)


def _skip_shutdown(are_threads_left: Callable[[], bool]) -> None:
    """End the process without Python's shutdown, which would crash if a thread came back from torch then."""
    if are_threads_left():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130)


def _fail(error: BaseException) -> NoReturn:
    """Print an expected error on one line and exit; raise any other."""
    if isinstance(error, FathometerError):
        message = _in_flags(error)
    elif isinstance(error, OSError):
        message = f"{error.filename or 'a file'}: {error.strerror or error}"
    elif is_out_of_memory(error):
        message = "out of memory; use fewer samples or smaller batches"
    else:
        raise error
    if SETTINGS.debug:
        traceback.print_exception(error)
    _print_error(f"error: {message}", "red")
    sys.exit(2)


def _in_flags(error: FathometerError) -> str:
    """Return the message with the flag of the command line in place of the parameter of the library."""
    if isinstance(error, InputError) and error.parameter in FLAGS:
        return f"{FLAGS[error.parameter]}: {error.reason}"
    return str(error)


def _warn(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    if str(message) in _WARNED:
        return
    _WARNED.add(str(message))
    place = f" ({category.__name__}, {filename}:{lineno})" if SETTINGS.verbose or SETTINGS.debug else ""
    _print_error(f"warning: {message}{place}", "yellow")


def _print_error(text: str, style: str = "") -> None:
    from fathometer.progress import Terminal

    Terminal(stderr=True).say(text, style)
