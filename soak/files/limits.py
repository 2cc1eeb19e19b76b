"""Trials in a process of their own, with limits on memory and time: what ends it is found out, too."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from fathometer.errors import FathometerError

MEMORY = 2**31  # bytes, beyond what the process has when it starts
SECONDS = 10.0  # for one trial


class OutOfRangeError(Exception):
    """A file was read, and what it gave cannot be."""


class Finding(NamedTuple):
    """What became of a trial: `loaded`, `refused`, `crashed` or `out of range`, and why."""

    number: int
    fate: str
    words: str = ""


class _TooLateError(BaseException):
    """So that no `except Exception` catches it."""


def tried(trial: Callable[[int], None], count: int) -> Iterator[Finding]:
    """`trial(number)` for every number below `count`; after one that ends the process, a new one goes on."""
    done = 0
    while done < count:
        here, there = get_context("fork").Pipe(duplex=False)
        process = get_context("fork").Process(target=_work, args=(trial, range(done, count), there))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fork beside threads, of which the child uses none
            process.start()
        there.close()
        try:
            while done < count and here.poll(3 * SECONDS):
                yield here.recv()
                done += 1
        except EOFError:
            process.join()
            yield Finding(done, "crashed", f"the process ended with {process.exitcode}")
            done += 1
        else:
            if done < count:
                yield Finding(done, "crashed", f"did not end in {3 * SECONDS:.0f} s")
                done += 1
        finally:
            process.kill()
            process.join()
            here.close()


def _work(trial: Callable[[int], None], numbers: range, out: Connection) -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, sys.__stderr__.fileno() if sys.__stderr__ else 2)  # what libraries written in C say
    most = _size() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.signal(signal.SIGALRM, _too_late)
    for number in numbers:
        out.send(_one(trial, number))
    os._exit(0)


def _one(trial: Callable[[int], None], number: int) -> Finding:
    started = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial(number)
    except FathometerError:
        return Finding(number, "refused")
    except OutOfRangeError as error:
        return Finding(number, "out of range", _brief(str(error)))
    except _TooLateError:
        return Finding(number, "crashed", f"took more than {time.monotonic() - started:.0f} s")
    except BaseException as error:
        return Finding(number, "crashed", f"{_where(error)}: {type(error).__name__}: {_brief(str(error))}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return Finding(number, "loaded")


def _where(error: BaseException) -> str:
    """The last place in the package."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "fathometer" in frame.filename]
    frames = frames or list(traceback.extract_tb(error.__traceback__))
    if not frames:
        return "somewhere"
    return f"{Path(frames[-1].filename).name}, {frames[-1].name}"


def _brief(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 120 else words[:119] + "…"


def _size() -> int:
    """Of the address space, in bytes."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()


def _too_late(*_: object) -> None:
    raise _TooLateError
