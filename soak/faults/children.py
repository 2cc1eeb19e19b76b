"""Commands of fathometer in processes of their own, to be killed and starved."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from soak.faults.afflict import Order

ROOT = Path(__file__).parents[2]


class Ended(NamedTuple):
    """How a process ended.

    Attributes:
        code: its exit code; -9 if it was killed.
        printed: what it had to say.
        work: forward passes, or segments of training.
        files: operations on files.
        clocks: how often its clock was set.
    """

    code: int
    printed: str
    work: int
    files: int
    clocks: int = 0

    @property
    def was_killed(self) -> bool:
        """Whether it was killed as ordered: before an operation, or by a write past the limit."""
        return self.code in (-signal.SIGKILL, -signal.SIGXFSZ)

    @property
    def is_plain_error(self) -> bool:
        """Whether it ended with a message in one line, and with no traceback."""
        lines = [line for line in self.printed.splitlines() if line.startswith("error: ")]
        return self.code == 2 and len(lines) == 1 and "Traceback" not in self.printed

    @property
    def last_words(self) -> str:
        """The last line that it printed."""
        return next(reversed(self.printed.strip().splitlines()), "")


class Children:
    """Runs orders, each in a process of its own; in a folder that is removed in the end."""

    def __init__(self, server: subprocess.Popen[str], folder: Path) -> None:
        self._server, self._folder = server, folder

    def new_folder(self) -> Path:
        """An empty one."""
        return Path(tempfile.mkdtemp(dir=self._folder))

    def run(self, arguments: Sequence[str], folder: Path, **affliction: Any) -> Ended:
        """One command, to its end."""
        return self.run_together([(arguments, affliction)], folder)[0]

    def run_together(
        self, commands: Sequence[tuple[Sequence[str], dict[str, Any]]], folder: Path
    ) -> list[Ended]:
        """Several that begin at once."""
        orders = [Order(list(arguments), str(folder), **affliction) for arguments, affliction in commands]
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps([asdict(order) for order in orders]) + "\n")
        self._server.stdin.flush()
        return [Ended(**entry) for entry in json.loads(self._server.stdout.readline())]


@contextmanager
def children() -> Iterator[Children]:
    """A server of processes, for as long as the context lasts."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    folder.chmod(0o777)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    server = subprocess.Popen(
        [sys.executable, "-m", "soak.faults.zygote"],
        env={**os.environ, **threads, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": path, "COLUMNS": "200"},
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Children(server, folder)
    finally:
        server.communicate()
        shutil.rmtree(folder, ignore_errors=True)
