"""Records of what was measured: a program writes them, with commit, machine and date. Nobody edits them."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch

from fathometer.results.provenance import describe_device, now, versions

Row: TypeAlias = "dict[str, str | int | float]"

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks" / "records"


def add_record_option(parser: argparse.ArgumentParser) -> None:
    """Let a benchmark write its record."""
    parser.add_argument(
        "--record", action="store_true", help="write benchmarks/records; `python -m benchmarks.page` shows it"
    )


def record_benchmark(name: str, found: Any, device: str = "cpu") -> None:
    """Write the record of a benchmark: what it found, and how that came about."""
    write_record(FOLDER / f"{name}-{device}.json", {"benchmark": name, "found": found}, device)


def write_record(path: Path, found: Mapping[str, Any], device: str = "cpu") -> None:
    """Write what was found, with how it came about."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**found, **origin(device)}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", "utf-8")


def origin(device: str = "cpu") -> dict[str, Any]:
    """Return command, commit, date, machine and versions of this moment."""
    module = getattr(sys.modules["__main__"], "__spec__", None)
    words = ["python -m", module.name if module else "?", *sys.argv[1:]]
    return {
        "command": re.sub(r"/\S*/", "", " ".join(words)),  # without the folders of this machine
        "commit": commit(),
        "date": now(),
        "machine": processor() if device == "cpu" else describe_device(torch.device(device)),
        "load": round(os.getloadavg()[0], 1),
        "versions": versions(),
    }


def processor() -> str:
    """Return the name of the processor, and how many cores there are."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor()
    return f"{os.cpu_count()} cores of {name}"


def commit() -> str:
    """Name the commit, and say whether the code differs from it.

    A copy of the code without a repository names it in the environment variable `GIT_COMMIT`.
    """
    if copied := os.environ.get("GIT_COMMIT"):
        return copied
    changed = _git(
        "status", "--porcelain", "--", "src", "tests", "papers/*.py", "benchmarks/*.py", "examples"
    )
    return _git("rev-parse", "--short=10", "HEAD") + (" with changes" if changed else "")


def footer(record: Mapping[str, Any]) -> str:
    """Say how a record came about, in a line of a page."""
    installed = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return f"{record['machine']}, {record['date']}, commit {record['commit']}; {installed}"


def markdown_table(rows: Sequence[Mapping[str, str | int | float]]) -> str:
    """Return rows as a table, numbers to the right."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    numeric = {c for c in columns if all(isinstance(row.get(c, 0), int | float) for row in rows)}
    rules = ["---:" if column in numeric else "---" for column in columns]
    lines: Iterable[list[str]] = [columns, rules, *([_cell(row.get(c, "")) for c in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def escaped(text: str) -> str:
    """Return a text that may stand in a cell."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _cell(value: str | int | float) -> str:
    if isinstance(value, str):
        return escaped(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
