"""Ctrl-C ends a measurement while a gauge is in the middle of something long; finished batches are kept."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

_MAX_SECONDS = 10.0  # of a loaded machine; the gauge would take a minute

_NETWORK = """
import time, torch
from torch import nn
from fathometer.data import Inputs

calls = []

def sleeps_in_the_second_batch(x, y):
    calls.append(x)
    if len(calls) > SITES:
        print("sleeping", flush=True)
        time.sleep(60)
    return 0.0

def build():
    layers = (module for _ in range(SITES) for module in (nn.Linear(4, 4), nn.Tanh()))
    return nn.Sequential(*layers), Inputs("array", (4,))

x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
"""
_SCRIPT = """
import sys
from slow import build, sleeps_in_the_second_batch, x
from fathometer import measure
from fathometer.measuring import loop

loop._IN_BACKGROUND = {"cpu"} if sys.argv[1] == "background" else set()
measure(build()[0], x, samples=32, gauges=["norm", sleeps_in_the_second_batch], journal=".out.json.journal")
"""
_COMMAND = """
from dataclasses import replace
import numpy as np
from slow import sleeps_in_the_second_batch, x
from fathometer.cli import main
from fathometer.gauges.registry import GAUGES

np.save("x.npy", x.numpy())
GAUGES["norm"] = replace(GAUGES["norm"], function=sleeps_in_the_second_batch, takes_samples=False)
main()
"""
_ARGUMENTS = (
    *("measure", "slow:build", "--weights", "none", "--data", "x.npy", "--samples", "32"),
    *("--gauges", "affinity,norm", "--out", "out.json"),
)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.parametrize("where", ["one site", "threads", "background", "command"])
def test_an_interrupt_does_not_wait_for_a_gauge(where: str, tmp_path: Path) -> None:
    sites = 1 if where == "one site" else 3
    (tmp_path / "slow.py").write_text(_NETWORK.replace("SITES", str(sites)))
    (tmp_path / "run.py").write_text(_COMMAND if where == "command" else _SCRIPT)
    arguments = _ARGUMENTS if where == "command" else (where,)
    process = subprocess.Popen(
        [sys.executable, "run.py", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "sleeping\n"
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        seconds = time.monotonic() - begun
    assert seconds < _MAX_SECONDS
    if where == "command":
        assert process.returncode == 130
        assert said.endswith("Interrupted. Run the same command again to resume.\n")
    else:
        assert said.endswith("KeyboardInterrupt\n")
    lines = (tmp_path / ".out.json.journal").read_text().splitlines()
    assert [json.loads(line)["batch"] for line in lines[1:]] == [0]
