"""Commands in processes of their own, which may be killed at a given place.

A server has imported everything and forks one process for each order, so that a command starts at once.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Order:
    """A command, and its fault.

    Attributes:
        arguments: of the command; the first is `fathometer`.
        folder: the current folder; operations on files below are counted.
        kill_before: the number of the file operation before which the process is killed, as by `kill -9`.
        kill_past: a write that makes a file longer than this kills the process.
        delay: seconds before it starts.
        limit: seconds after which it counts as hanging, and is killed.
    """

    arguments: list[str]
    folder: str
    kill_before: int | None = None
    kill_past: int | None = None
    delay: float = 0.0
    limit: int = 60


class Ended(NamedTuple):
    """How a process ended.

    Attributes:
        code: the exit code; -9 if it was killed.
        printed: its output.
        work: the number of forward passes, or of training segments.
        files: the number of file operations.
    """

    code: int
    printed: str
    work: int
    files: int

    @property
    def was_killed(self) -> bool:
        """Whether it was killed as ordered."""
        return self.code in (-signal.SIGKILL, -signal.SIGXFSZ)

    @property
    def is_plain_error(self) -> bool:
        """Whether it ended with one error message and no traceback."""
        lines = [line for line in self.printed.splitlines() if line.startswith("error: ")]
        return self.code == 2 and len(lines) == 1 and "Traceback" not in self.printed

    @property
    def last_line(self) -> str:
        """The last line of its output."""
        return next(reversed(self.printed.strip().splitlines()), "")


class Processes:
    """Runs orders, each in a process of its own."""

    def __init__(self, server: subprocess.Popen[str], folder: Path) -> None:
        self._server, self._folder = server, folder

    def new_folder(self) -> Path:
        """Make an empty folder."""
        return Path(tempfile.mkdtemp(dir=self._folder))

    def run(self, arguments: Sequence[str], folder: Path, **fault: Any) -> Ended:
        """Run one command to its end."""
        return self.run_together([(arguments, fault)], folder)[0]

    def run_together(
        self, commands: Sequence[tuple[Sequence[str], dict[str, Any]]], folder: Path
    ) -> list[Ended]:
        """Run several commands at once."""
        orders = [Order(list(arguments), str(folder), **fault) for arguments, fault in commands]
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps([asdict(order) for order in orders]) + "\n")
        self._server.stdin.flush()
        return [Ended(**entry) for entry in json.loads(self._server.stdout.readline())]


@contextmanager
def fork_server(folder: Path) -> Iterator[Processes]:
    """Start the server for as long as the context lasts."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.robustness.fork_server"],
        env={**os.environ, **threads, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": path, "COLUMNS": "200"},
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Processes(server, folder)
    finally:
        server.communicate()
