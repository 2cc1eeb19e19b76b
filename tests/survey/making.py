"""Plans for tests, and what it means that two folders hold the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd

from fathometer import load
from fathometer.survey import Plan, parse_plan

ROOT = Path(__file__).parents[2]
PLAN = """
weights = "none"
[data]
noise = "random:60"
[settings]
samples = 16
gauges = ["affinity", "norm"]
reduction = "position"
[run]
batch_size = 5
threads = 1
{run}
[families.Tiny]
models = [{models}]
"""


def plan_text(*models: str, run: str = 'device = "cpu"') -> str:
    return PLAN.format(models=", ".join(f'"tests.survey.nets:{model}"' for model in models), run=run)


def plan(*models: str, run: str = 'device = "cpu"', change: tuple[str, str] = ("", "")) -> Plan:
    return parse_plan(plan_text(*models, run=run).replace(*change))


def start(folder: Path, out: str, address: str | None = None, backend: str = "ray") -> subprocess.Popen[str]:
    """A survey of `folder/plan.toml`, in a process of its own."""
    code = (
        "import sys; from fathometer.survey import run_survey; "
        f"run_survey(*sys.argv[1:], backend={backend!r}, address={address!r})"
    )
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder / "plan.toml"), str(folder / out)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def assert_same(first: Path, second: Path) -> None:
    """The same files with the same values, bit for bit."""
    names = sorted(file.name for file in first.glob("*.json"))
    assert names
    assert names == sorted(file.name for file in second.glob("*.json"))
    for name in names:
        one, two = load(first / name), load(second / name)
        assert one.sites == two.sites
        pd.testing.assert_frame_equal(one.records, two.records, check_exact=True)
        assert one.provenance.data == two.provenance.data
        assert one.provenance.settings == two.provenance.settings
