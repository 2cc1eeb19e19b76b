"""The server of `processes`: reads lines of JSON, each a list of orders, and prints how they ended.

Faults come from inside the process, without a change to the package: an audit hook sees the operations on
files, and a limit of the system cuts a write.
"""

from __future__ import annotations

import fcntl
import gc
import json
import math
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from fathometer.cli import main
from fathometer.leaky import sweeping, training
from tests.robustness import nets
from tests.robustness.nets import Counter
from tests.robustness.processes import Order

_PIPE = 2**20  # bytes of output; a file would count against the limits of the process
_CHANGES = {"os.rename": 2, "os.remove": 1, "os.mkdir": 1, "os.rmdir": 1}  # event: how many paths it has
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def serve() -> None:
    """Run orders until there are no more."""
    for module in (
        "pandas",
        "matplotlib.pyplot",
        "pyarrow.parquet",
        "fathometer.survey",
        "fathometer.report.page",
    ):
        __import__(module)
    gc.freeze()  # a fork shares what is there
    for line in sys.stdin:
        started = [_fork(Order(**entry)) for entry in json.loads(line)]
        print(json.dumps([_end(*child) for child in started]), flush=True)


def _fork(order: Order) -> tuple[int, int, Counter, Counter]:
    work, files = Counter(), Counter()
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE)
    child = os.fork()
    if not child:
        _run(order, writing, work, files)
    os.close(writing)
    return child, reading, work, files


def _end(child: int, reading: int, work: Counter, files: Counter) -> dict[str, Any]:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(reading, "rb", buffering=0) as file:
        printed = (file.read(_PIPE) or b"").decode(errors="replace")
    return {"code": code, "printed": printed, "work": work.value, "files": files.value}


def _run(order: Order, output: int, work: Counter, files: Counter) -> None:
    """Run the command in the child, which ends here."""
    code: object = 70
    try:
        os.chdir(order.folder)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        nets.work = work
        _set_fault(order, files)
        sys.argv = order.arguments
        main()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _set_fault(order: Order, files: Counter) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(order.limit)
    time.sleep(order.delay)
    _count_segments()
    _watch_files(order, files)
    if order.kill_past is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (order.kill_past, order.kill_past))


def _count_segments() -> None:
    """Count a segment of training as work, and write a checkpoint after each."""
    advance = training.Training.advance

    def counted(self: training.Training) -> None:
        nets.count_work()
        advance(self)

    training.Training.advance = counted  # type: ignore[method-assign]
    sweeping.CHECKPOINT_EVERY, sweeping.CHECKPOINT_SHARE = 0.0, math.inf


def _watch_files(order: Order, files: Counter) -> None:
    area = Path(order.folder).resolve()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        paths: tuple[Any, ...] = ()
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
            paths = arguments[:1]
        elif event in _CHANGES:
            paths = arguments[: _CHANGES[event]]
        if any(_is_below(path, area) for path in paths) and files.add() == order.kill_before:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def _is_below(path: Any, area: Path) -> bool:
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    return str(area) == os.path.commonpath((area, os.path.abspath(os.fsdecode(path))))


if __name__ == "__main__":
    serve()
