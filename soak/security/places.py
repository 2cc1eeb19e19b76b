"""Names in plans that look like paths: nothing is written but into the results folder."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

from fathometer.cli.naming import slug
from fathometer.errors import InputError
from fathometer.leaky import Design, Phase, Recipe, Teacher, sweep
from fathometer.survey import Outcome, Store, read_plan, run_survey
from papers import chosen_items
from soak.security.evil import PATHS
from soak.security.trial import Point, everything, inside, refused

NETS = """
import torch
from torch import nn

def small():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 5))
    net.add_module("/etc/x", nn.ReLU())
    net.add_module("\\x1b[31m/etc", nn.Tanh())
    return net
"""


def a_survey_stays_in_its_folder(folder: Path, names: Sequence[str]) -> Point:
    """Data, families and settings with such names, measured; links in the results folder."""
    point = Point("a plan writes into its results folder alone")
    home = folder / "home" / "user"
    out = home / "project" / "results"
    out.mkdir(parents=True)
    victim = folder / "victim.json"
    victim.write_text("mine", "utf-8")
    (home / "project" / "evil_nets.py").write_text(NETS, "utf-8")
    chosen = [name for name in names if name]
    lines = ['models = ["evil_nets:small"]', 'weights = "none"', "[data]"]
    lines += [f'{json.dumps(name)} = "random:{40 + place}"' for place, name in enumerate(chosen)]
    lines += [
        f"[settings.{json.dumps(name)}]\nsamples = {30 + i}\ngauges = 'norm'"
        for i, name in enumerate(chosen[:1])
    ]
    plan = home / "project" / "plan.toml"
    plan.write_text("\n".join(lines), "utf-8")
    before = everything(folder)
    with inside(home / "project"):
        tasks = len(read_plan(plan))
        outcome = run_survey(plan, out)
    point.note(len(outcome.measured) == tasks, f"{len(outcome.failed)} of {tasks} failed: {_first(outcome)}")
    _judge(point, folder, out, before, "a survey")
    for name in Store(out).files.names():
        point.note("/" not in name and len(name) < 160 and name.isprintable(), f"a file called {name!r}")
    for written in list(out.glob("*.json"))[:1]:
        written.unlink()
        os.symlink(victim, written)
    with inside(home / "project"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the link does not lead to a sounding
        run_survey(plan, out)
    point.note(victim.read_text("utf-8") == "mine", "the target of a link in the results folder was changed")
    return point


def names_become_files(folder: Path) -> Point:
    """What verbs call their files by default, and what `reproduce` takes as items."""
    point = Point("names of networks and data become plain file names")
    for name in PATHS:
        found = slug(name)
        plain = all(c.isascii() and (c.isalnum() or c in "._-") for c in found)
        point.note(
            plain and not found.startswith((".", "-")) and 0 < len(found) <= 100, f"{name!r} is {found!r}"
        )
        try:
            chosen_items([name])
        except InputError:
            point.note(True, "")
        else:
            point.note(name == "*", f"reproduce took {name!r}")
    before = everything(folder)
    design = Design(2.0, 3, 5, teacher=Teacher((4, 2, 4)), samples=12, test_samples=4)
    with inside(folder):
        error = refused(lambda: sweep(design, Recipe((Phase("adam", 2),)), threads=1, out="run"))
    point.note(not error, f"a sweep ended in {error}")
    _judge(point, folder, folder / "run", before, "a leaky sweep")
    return point


def _first(outcome: Outcome) -> str:
    return outcome.failed[0][1].message if outcome.failed else ""


def _judge(point: Point, root: Path, allowed: Path, before: dict[str, int], what: str) -> None:
    after = everything(root)
    inner = allowed.relative_to(root).as_posix() + "/"
    new = [name for name, time in after.items() if before.get(name) != time and not name.startswith(inner)]
    new = [name for name in new if "__pycache__" not in name]
    point.note(not new, f"{what} wrote {new[:3]}")
    gone = [name for name in before if name not in after]
    point.note(not gone, f"{what} removed {gone[:3]}")
