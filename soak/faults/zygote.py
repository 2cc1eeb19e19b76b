"""A process that has imported everything, and forks one for each order: a command begins at once.

It reads lines of JSON, each a list of orders that begin together, and answers with how they ended.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import sys
import traceback
from typing import Any

import soak.faults.nets  # noqa: F401 (so that it is there already)
from fathometer.cli import main
from soak.faults.afflict import Counters, Order, afflict

_ROOM = 2**20  # bytes of what a process prints; files would count against its limits


def serve() -> None:
    """Until there are no more orders."""
    gc.freeze()  # so that a fork shares what is there
    for line in sys.stdin:
        begun = [_forked(Order(**entry)) for entry in json.loads(line)]
        print(json.dumps([_ended(*child) for child in begun]), flush=True)


def _forked(order: Order) -> tuple[int, int, Counters]:
    counters = Counters()
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _ROOM)
    child = os.fork()
    if not child:
        _obey(order, writing, counters)
    os.close(writing)
    return child, reading, counters


def _ended(child: int, reading: int, counters: Counters) -> dict[str, Any]:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(reading, "rb", buffering=0) as file:
        printed = (file.read(_ROOM) or b"").decode(errors="replace")
    counted = {"work": counters.work.value, "files": counters.files.value, "clocks": counters.clocks.value}
    return {"code": code, "printed": printed, **counted}


def _obey(order: Order, printing: int, counters: Counters) -> None:
    """In the child, which ends here."""
    code: object = 70
    try:
        os.chdir(order.folder)
        os.dup2(printing, 1)
        os.dup2(printing, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        afflict(order, counters)
        sys.argv = ["fathometer", *order.arguments]
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


if __name__ == "__main__":
    serve()
