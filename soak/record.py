"""What a program found, with how it came about, as a file that the page is written from."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from fathometer.results.provenance import describe_device, now, versions
from soak.program import Effort, Program, Row

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fathometer"
FOLDER = ROOT / "docs" / "reliability"


@dataclass(frozen=True)
class Record:
    """The outcome of one program, and the circumstances."""

    name: str
    title: str
    asks: str
    effort: Effort
    rows: list[Row]
    failures: list[str]
    notes: list[str]
    seconds: float
    date: str
    device: str
    versions: dict[str, str]
    source: str = ""

    def write(self, folder: Path = FOLDER) -> Path:
        """Save as `NAME.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", "utf-8")
        return path


def carry_out(program: Program, effort: Effort) -> Record:
    """Run a program and put its outcome on record."""
    source = source_hash()
    started = time.perf_counter()
    outcome = program.run(effort)
    return Record(
        program.name,
        program.title,
        program.asks,
        effort,
        outcome.rows,
        outcome.failures,
        outcome.notes,
        round(time.perf_counter() - started, 1),
        now(),
        describe_device(torch.device("cuda" if program.gpu else "cpu")),
        versions(),
        source,
    )


def source_hash() -> str:
    """Of all that the package is made of: by it a record tells which code it is of."""
    digest = hashlib.sha256()
    for path in sorted(SOURCE.rglob("*.py")):
        digest.update(f"{path.relative_to(SOURCE)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def read_records(folder: Path = FOLDER) -> dict[str, Record]:
    """All records of a folder, by name."""
    return {
        path.stem: Record(**json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob("*.json"))
    }
