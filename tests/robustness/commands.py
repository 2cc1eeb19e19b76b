"""The commands that are tried, and what their results hold: units that can be lost or doubled."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import torch
from safetensors import safe_open
from torch import nn

from fathometer import load, measure
from fathometer.errors import FathometerError
from fathometer.results.provenance import weights_hash
from fathometer.results.sounding import to_json
from tests.robustness.processes import Ended, Processes
from tests.survey import making

Units: TypeAlias = "Counter[str]"
"""Everything in a result, with its number of occurrences; dates and durations are left out."""

PLAN = making.PLAN.format(
    run="", models=", ".join(f'"tests.robustness.nets:{name}"' for name in ("small", "other", "conditional"))
)
_EARLIER = "earlier.json"


@dataclass(frozen=True)
class Command:
    """A command that writes a result.

    Attributes:
        name: for the reader.
        first: its arguments.
        again: the arguments that resume it.
        out: what it writes.
        units: reads a result.
        may_repeat: how much work may be repeated after a kill: the batch or training segments in progress.
        unwritten: how much may be repeated after a full disk: what there was no space for.
    """

    name: str
    first: list[str]
    again: list[str]
    out: str
    units: Callable[[Path], Units]
    may_repeat: int = 0
    unwritten: int = 0

    def new_folder(self, processes: Processes) -> Path:
        """Make a folder with what the command needs."""
        folder = processes.new_folder()
        self.prepare(folder)
        return folder

    def prepare(self, folder: Path) -> None:
        """Write what the command needs, and an earlier result that must survive."""
        (folder / "plan.toml").write_text(PLAN, "utf-8")
        (folder / _EARLIER).write_text(_earlier(), "utf-8")

    def is_intact(self, folder: Path) -> bool:
        """Whether the earlier result is unchanged."""
        return (folder / _EARLIER).read_text("utf-8") == _earlier()


@dataclass(frozen=True)
class Undisturbed:
    """A run without a fault, to compare others with."""

    command: Command
    folder: Path
    units: Units
    files: frozenset[str]
    ended: Ended

    @classmethod
    def run(cls, command: Command, processes: Processes) -> Undisturbed:
        """Run the command once, without a fault."""
        folder = command.new_folder(processes)
        ended = processes.run(command.first, folder)
        assert ended.code == 0, ended.printed
        return cls(command, folder, command.units(folder / command.out), _files_in(folder), ended)

    @property
    def largest(self) -> int:
        """Size of the largest file in bytes."""
        found = self.folder / self.command.out
        return max(path.stat().st_size for path in (found, *found.rglob("*")) if path.is_file())

    def faults(self, folder: Path, last: Ended, work: int, *, may_repeat: int = 0) -> list[str]:
        """Say what is wrong with a result that should be that of an undisturbed run.

        `work` is that of all processes together, `may_repeat` what of it was interrupted.
        """
        if last.code != 0:
            return [f"exit code {last.code} in the end ({last.last_line})"]
        try:
            found = self.command.units(folder / self.command.out)
        except (FathometerError, OSError, ValueError) as error:
            return [f"the result cannot be read ({error})"]
        left = _files_in(folder) - self.files
        repeated = work - self.ended.work - may_repeat
        faults = {
            f"{(self.units - found).total()} values lost": bool(self.units - found),
            f"{(found - self.units).total()} values doubled": bool(found - self.units),
            f"{repeated} units of work repeated": repeated > 0,
            f"left over: {', '.join(sorted(left))}": bool(left),
        }
        return [words for words, is_so in faults.items() if is_so]

    def is_complete(self, folder: Path) -> bool:
        """Whether the whole result is there."""
        try:
            return self.command.units(folder / self.command.out) == self.units
        except (FathometerError, OSError, ValueError):
            return False


def sizes(commands: Sequence[Command], small: Sequence[Command]) -> pytest.MarkDecorator:
    """Try the small version with some commands, and the full one with all of them."""
    quick = [pytest.param(command, False, id=f"{command.name}-small") for command in small]
    whole = [
        pytest.param(command, True, id=f"{command.name}-full", marks=pytest.mark.robustness)
        for command in commands
    ]
    return pytest.mark.parametrize(("command", "full"), [*quick, *whole])


def spread(last: int, count: int) -> list[int]:
    """At most `count` whole numbers from 1 to `last`, with both ends."""
    if count >= last:
        return list(range(1, last + 1))
    return sorted({round(1 + place * (last - 1) / max(count - 1, 1)) for place in range(count)})


def make_old(folder: Path) -> None:
    """Let hours pass for unfinished files, which are removed when they are old."""
    for path in folder.rglob(".*.part*"):
        os.utime(path, (0, 0))


def _files_in(folder: Path) -> frozenset[str]:
    return frozenset(str(path.relative_to(folder)) for path in folder.rglob("*"))


@cache
def _earlier() -> str:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 6), nn.Tanh())
    return to_json(measure(net, torch.randn(40, 4), samples=20, gauges="affinity"))


def sounding_units(path: Path) -> Units:
    """One unit for each site and batch, one for everything else."""
    content = json.loads(to_json(load(path)))
    records = content.pop("records")
    for name in ("date", "seconds"):
        content["provenance"].pop(name)
    rows = zip(*records.values(), strict=True)
    return Counter([f"{path.name} {json.dumps(row)}" for row in rows] + [f"{path.name} {content}"])


def survey_units(folder: Path) -> Units:
    """The units of all soundings."""
    return sum((sounding_units(path) for path in sorted(folder.glob("*.json"))), Counter())


def sweep_units(folder: Path) -> Units:
    """One unit for each network and each task, one for the plan."""
    plan: dict[str, Any] = json.loads((folder / "sweep.json").read_text("utf-8"))
    for name in ("date", "seconds"):
        (plan["provenance"] or {}).pop(name, None)
    units = Counter([json.dumps(plan)])
    for path in sorted(folder.glob("[nt]*.safetensors")):
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            units[f"{path.name} {weights_hash(tensors)} {file.metadata()}"] += 1
    return units


def page_units(path: Path) -> Units:
    """The page, if it is complete."""
    return Counter(["page"] if path.read_text("utf-8").rstrip().endswith("</html>") else [])


def _fathometer(line: str) -> list[str]:
    return ["fathometer", *line.split()]


_LAB = "--preset quick --width 8 --layers 4 --task-samples 20 --epochs 12"
_MEASURE = _fathometer(
    "measure tests.robustness.nets:conditional --weights none --data random:60 --samples 16 --batch-size 5 "
    "--gauges affinity,norm --out sounding.json"
)
_SURVEY = _fathometer("survey run plan.toml --out results")
_SWEEP = _fathometer(f"leaky sweep --depths 1,2 --ranks 2 --seeds 2 {_LAB} --out sweep")
_TRAIN = _fathometer(f"leaky train --depth 2 --rank 2 --second-order 6 {_LAB} --out run")
_REPORT = _fathometer(f"report {_EARLIER} --out page.html")

MEASURE = Command("measure", _MEASURE, [*_MEASURE, "--resume"], "sounding.json", sounding_units, 4, 4)
SURVEY = Command("survey", _SURVEY, _SURVEY, "results", survey_units, 4, 4)
SWEEP = Command("leaky sweep", _SWEEP, [*_SWEEP, "--resume"], "sweep", sweep_units, 2, 4)
TRAIN = Command("leaky train", _TRAIN, [*_TRAIN, "--resume"], "run", sweep_units, 1, 1)
REPORT = Command("report", _REPORT, [*_REPORT, "--force"], "page.html", page_units)
