"""A worker of Ray killed at work, and a whole node."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from soak.faults.children import ROOT
from soak.faults.commands import survey_units
from soak.faults.tally import Tally, outcome
from soak.program import Effort, Outcome, Program

_PATIENCE = 240  # seconds for one survey on a cluster


def _run(effort: Effort) -> Outcome:
    tallies = [Tally("a worker killed at work"), Tally("a node of two killed")]
    if importlib.util.find_spec("ray") is None:
        return outcome(tallies, ["Ray is not installed here, so nothing was tried."])
    if effort == "smoke":
        return outcome(tallies, ["A cluster takes longer to start than this effort has: nothing was tried."])
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        for tally, deaths in zip(tallies, ("worker", "node"), strict=True):
            for number in range(2):
                _trial(tally, deaths, number, Path(folder))
    notes = [
        "Two nodes of one CPU on this machine (`ray.cluster_utils.Cluster`), three networks, a task for "
        "each network. A worker is stopped in a forward pass, and sent `kill -9` there; or the node of such "
        "a worker is removed without a word. Lost and doubled: values against those of one process "
        "without Ray."
    ]
    return outcome(tallies, notes)


def _trial(tally: Tally, what: str, number: int, folder: Path) -> None:
    here, there = folder / f"{what}-{number}-here", folder / f"{what}-{number}-ray"
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    where = f"after {number} soundings"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "soak.faults.ray_survey", what, str(number), str(here), str(there)],
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        tally.add(where, [f"no end within {_PATIENCE} s"])
        return
    if done.returncode != 0:
        tally.add(where, [f"exit code {done.returncode} ({next(reversed(done.stderr.splitlines()), '')})"])
        return
    told = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    wrong = [] if told["killed"] else ["nothing was killed"]
    wrong += [f"failed: {failure}" for failure in told["failed"]]
    expected, found = survey_units(here), survey_units(there)
    tally.add(where, wrong, lost=(expected - found).total(), doubled=(found - expected).total())


RAY = Program(
    "ray",
    "Deaths on a Ray cluster",
    "A survey runs on two Ray nodes while a worker, or a node, is killed. It is a failure if it does not "
    "end, or if its values are not those of one process, each exactly once.",
    _run,
)
