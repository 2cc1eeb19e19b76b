"""Killed workers and nodes of a Ray cluster.

A survey of three networks runs on two Ray nodes of one CPU each (`ray.cluster_utils`). A worker is stopped
in a forward pass and killed there, or its whole node is removed. It is a failure if the survey does not
end, or if its values are not those of one process, each exactly once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fathometer.survey import parse_plan, run_survey
from tests.robustness.commands import PLAN, survey_units
from tests.robustness.processes import ROOT
from tests.robustness.recording import Row

pytest.importorskip("ray")


@pytest.mark.robustness
@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("what", ["worker", "node"])
def test_killed(what: str, after: int, row: Row, tmp_path: Path) -> None:
    row |= {"killed": what, "after soundings": after}
    run_survey(parse_plan(PLAN), tmp_path / "here")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "tests.robustness.ray_survey",
            what,
            str(after),
            str(tmp_path / "ray"),
        ],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert told == {"killed": [what], "failed": []}
    expected, found = survey_units(tmp_path / "here"), survey_units(tmp_path / "ray")
    row |= {
        "values": found.total(),
        "lost": (expected - found).total(),
        "doubled": (found - expected).total(),
    }
    assert found == expected
