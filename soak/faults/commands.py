"""The commands that are put to the test, and what their results hold: units that can be lost or doubled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import nn

from fathometer import load, measure
from fathometer.leaky.run_files import read_tensors
from fathometer.results.provenance import weights_hash
from fathometer.results.sounding_file import to_json
from papers import read_verdict

Units: TypeAlias = "Counter[str]"
"""Everything in a result, with how often it is there: values in full, but for dates and durations."""

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
[families.Small]
models = ["soak.faults.nets:small", "soak.faults.nets:other", "soak.faults.nets:moody"]
"""
_EARLIER = "earlier.json"
_LAB = ["--preset", "quick", "--width", "8", "--layers", "4", "--samples", "20", "--epochs", "12"]


@dataclass(frozen=True)
class Command:
    """A command that leaves a result.

    Attributes:
        name: for people.
        first: its arguments.
        again: the arguments that go on after an interruption.
        out: what it writes.
        units: what a result holds.
        may_repeat: how much work may be done twice after an interruption: the batch, or the segments, under
            way.
        unwritten: how much after a full disk: the batch, or in a sweep a segment of each network, that there
            was no space for.
    """

    name: str
    first: list[str]
    again: list[str]
    out: str
    units: Callable[[Path], Units]
    may_repeat: int
    unwritten: int

    def prepare(self, folder: Path) -> None:
        """What it needs in its folder, and an earlier result."""
        (folder / "plan.toml").write_text(PLAN, "utf-8")
        (folder / _EARLIER).write_text(_earlier(), "utf-8")

    def is_intact(self, folder: Path) -> bool:
        """Whether the earlier result is as it was."""
        return (folder / _EARLIER).read_text("utf-8") == _earlier()

    def found(self, folder: Path) -> Units:
        """What its result holds there; an error where it cannot be read."""
        return self.units(folder / self.out)


@cache
def _earlier() -> str:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 6), nn.Tanh())
    return to_json(measure(net, torch.randn(40, 4), samples=20, gauges="affinity"))


def sounding_units(path: Path) -> Units:
    """A unit for each site and batch, one for everything else."""
    content = json.loads(to_json(load(path)))
    records = content.pop("records")
    for name in ("date", "seconds"):
        content["provenance"].pop(name)
    rows = zip(*records.values(), strict=True)
    return Counter([f"{path.name} {json.dumps(row)}" for row in rows] + [f"{path.name} {content}"])


def survey_units(folder: Path) -> Units:
    """Those of all soundings."""
    return sum((sounding_units(path) for path in sorted(folder.glob("*.json"))), Counter())


def sweep_units(folder: Path) -> Units:
    """A unit for each network and each task, one for the plan."""
    return Counter(_sweep(folder))


def _sweep(folder: Path) -> Iterator[str]:
    plan: dict[str, Any] = json.loads((folder / "sweep.json").read_text("utf-8"))
    for name in ("date", "seconds"):
        (plan["provenance"] or {}).pop(name, None)
    yield json.dumps(plan)
    for path in sorted(folder.glob("[nt]*.safetensors")):
        tensors, facts = read_tensors(path, {})
        yield f"{path.name} {weights_hash(tensors)} {json.dumps(facts)}"


def page_units(path: Path) -> Units:
    """The page, whole."""
    text = path.read_text("utf-8")
    return Counter(["page"] if text.rstrip().endswith("</html>") else [])


def verdict_units(folder: Path) -> Units:
    """What was measured, and which files there are."""
    verdict = read_verdict(folder / "verdict.json")
    return Counter([*map(str, verdict.answers.values()), *(path.name for path in folder.iterdir())])


_MEASURE = ["measure", "soak.faults.nets:moody", "--weights", "none", "--data", "random:60"]
_MEASURE += ["--samples", "16", "--batch-size", "5", "--gauges", "affinity,norm", "--out", "sounding.json"]
_SWEEP = ["leaky", "sweep", "--depths", "1,2", "--ranks", "2", "--seeds", "2", *_LAB, "--out", "sweep"]
_TRAIN = ["leaky", "train", "--depth", "2", "--rank", "2", "--second-order", "6", *_LAB, "--out", "run"]

MEASURE = Command("measure", _MEASURE, [*_MEASURE, "--resume"], "sounding.json", sounding_units, 4, 4)
SURVEY = Command(
    "survey",
    ["survey", "plan.toml", "--out", "results"],
    ["survey", "plan.toml", "--out", "results"],
    "results",
    survey_units,
    4,
    4,
)
SWEEP = Command("leaky sweep", _SWEEP, [*_SWEEP, "--resume"], "sweep", sweep_units, 2, 4)
TRAIN = Command("leaky train", _TRAIN, [*_TRAIN, "--resume"], "run", sweep_units, 1, 1)
REPORT = Command(
    "report",
    ["report", _EARLIER, "--out", "page.html"],
    ["report", _EARLIER, "--out", "page.html", "--force"],
    "page.html",
    page_units,
    0,
    0,
)
_FIGURE = ["reproduce", "affinity-figure-2a", "--scale", "smoke"]
REPRODUCE = Command(
    "reproduce", _FIGURE, _FIGURE, "reproduction/smoke/affinity-figure-2a", verdict_units, 0, 0
)
COMMANDS = (MEASURE, SURVEY, SWEEP, TRAIN)
