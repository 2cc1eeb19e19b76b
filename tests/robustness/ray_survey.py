"""A survey on two Ray nodes of this machine while a worker or a node is killed, in a process of its own.

`python -m tests.robustness.ray_survey worker|node AFTER FOLDER` kills after so many soundings.
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

from fathometer.survey import parse_plan, run_survey
from tests.robustness.commands import PLAN
from tests.robustness.nets import MARKS, NODE

_TIMEOUT = 120.0  # seconds to wait for a worker to be at work


def main() -> None:
    """Run the survey, and print what was killed and what failed."""
    what, after, out = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    marks = out.with_name(f"{out.name}-marks")
    marks.mkdir()
    os.environ[MARKS] = str(marks)
    from ray.cluster_utils import Cluster

    nodes: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    os.environ[NODE] = "second"
    second = nodes.add_node(num_cpus=1)
    killed: list[str] = []
    killer = threading.Thread(target=_kill, args=(what, after, marks, out, nodes, second, killed))
    killer.start()
    try:
        outcome = run_survey(parse_plan(PLAN), out, backend="ray", address=nodes.address)
        killer.join()
        print(json.dumps({"killed": killed, "failed": [failure.message for _, failure in outcome.failed]}))
    finally:
        nodes.shutdown()


def _kill(what: str, after: int, marks: Path, out: Path, nodes: Any, second: Any, killed: list[str]) -> None:
    """Wait until so many soundings are finished and a worker of the second node is at work, and kill."""
    end = time.monotonic() + _TIMEOUT
    while time.monotonic() < end:
        busy = [mark for mark in marks.iterdir() if _node_of(mark) == "second"]
        if len(list(out.glob("*.json"))) >= after and busy:
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
