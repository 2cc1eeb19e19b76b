"""One survey on two Ray nodes of this machine, in a process of its own, while a worker or a node is killed.

`python -m soak.faults.ray_survey worker|node AFTER HERE THERE`
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from fathometer.survey import parse_plan, run_survey, tasks_of
from soak.faults.commands import PLAN
from soak.faults.marks import MARKS, NODE

_LONG = 120.0  # seconds to wait for a worker to be at work


def main() -> None:
    """Run it, and print what came of it."""
    what, after, here, there = sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    plan = parse_plan(PLAN)
    run_survey(plan, here)
    marks = there.with_name(f"{there.name}-marks")
    marks.mkdir()
    os.environ[MARKS] = str(marks)
    from ray.cluster_utils import Cluster

    nodes: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    os.environ[NODE] = "second"
    second = nodes.add_node(num_cpus=1)
    killed: list[str] = []
    killer = threading.Thread(target=_kill, args=(what, after, marks, there, nodes, second, killed))
    killer.start()
    try:
        outcome = run_survey(tasks_of(plan), there, backend="ray", address=nodes.address)
        killer.join()
        failed = [failure.message for _, failure in outcome.failed]
        print(json.dumps({"killed": killed, "measured": len(outcome.measured), "failed": failed}))
    finally:
        nodes.shutdown()


def _kill(
    what: str, after: int, marks: Path, there: Path, nodes: Any, second: Any, killed: list[str]
) -> None:
    """Wait until so many soundings are finished and a worker of the second node is at work, and kill."""
    end = time.monotonic() + _LONG
    while time.monotonic() < end:
        finished = len(list(there.glob("*.json")))
        busy = [mark for mark in marks.iterdir() if _node_of(mark) == "second"]
        if finished >= after and busy:
            worker = int(busy[0].name)
            os.kill(worker, signal.SIGSTOP)
            if busy[0].exists():  # it is in a forward pass, and stays there
                if what == "node":
                    nodes.remove_node(second, allow_graceful=False)
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                killed.append(what)
                return
            os.kill(worker, signal.SIGCONT)
        time.sleep(0.005)


def _node_of(mark: Path) -> str:
    try:
        return mark.read_text()
    except FileNotFoundError:  # the pass has ended
        return ""


if __name__ == "__main__":
    main()
