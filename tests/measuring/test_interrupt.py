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
import ctypes, time, torch
from torch import nn
from fathometer.data import Inputs

calls = []

def sleeps_in_the_second_batch(x, y):
    calls.append(x)
    if len(calls) > SITES:
        print("sleeping", flush=True)
        time.sleep(60)
    return 0.0

class Stuck(nn.Module):
    def __init__(self, passes):
        super().__init__()
        self.passes = passes

    def forward(self, x):  # after some passes it waits in C, where Python handles no signal
        self.passes -= 1
        if self.passes >= 0:
            return x
        lock, mutex = ctypes.CDLL(None).pthread_mutex_lock, ctypes.create_string_buffer(64)
        lock(mutex)
        print("sleeping", flush=True)
        lock(mutex)

def stuck():
    return Stuck(0), Inputs("array", (4,))

def stuck_later():
    return nn.Sequential(nn.Tanh(), Stuck(1)), Inputs("array", (4,))

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


def interrupted(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run a script, send SIGINT once it sleeps, and return how it ends; it must end soon."""
    process = subprocess.Popen(
        [sys.executable, "run.py", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "sleeping\n"
        time.sleep(0.5)  # then it does
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
        assert time.monotonic() - begun < _MAX_SECONDS
    return process.returncode, said


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.parametrize("where", ["one site", "threads", "background", "command"])
def test_an_interrupt_does_not_wait_for_a_gauge(where: str, tmp_path: Path) -> None:
    sites = 1 if where == "one site" else 3
    (tmp_path / "slow.py").write_text(_NETWORK.replace("SITES", str(sites)))
    (tmp_path / "run.py").write_text(_COMMAND if where == "command" else _SCRIPT)
    arguments = _ARGUMENTS if where == "command" else (where,)
    code, said = interrupted(tmp_path, *arguments)
    if where == "command":
        assert code == 130
        assert said.endswith("Interrupted. Run the same command again to resume.\n")
    else:
        assert said.endswith("KeyboardInterrupt\n")
    lines = (tmp_path / ".out.json.journal").read_text().splitlines()
    assert [json.loads(line)["batch"] for line in lines[1:]] == [0]


@pytest.mark.skipif(sys.platform != "linux", reason="blocks on a lock of Linux")
def test_an_interrupt_does_not_wait_for_a_layer(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(_NETWORK.replace("SITES", "1"))
    (tmp_path / "run.py").write_text(_COMMAND)
    arguments = [word.replace("slow:build", "slow:stuck") for word in _ARGUMENTS]
    code, said = interrupted(tmp_path, *arguments)
    assert (code, said.strip()) == (130, "Interrupted.")
    code, said = interrupted(tmp_path, *arguments)  # no lock is left behind
    assert (code, said.strip()) == (130, "Interrupted.")
    arguments = [word.replace("slow:build", "slow:stuck_later") for word in _ARGUMENTS]
    code, said = interrupted(tmp_path, *arguments)
    assert code == 130
    assert said.endswith("Interrupted. Run the same command again to resume.\n")
