"""`package.module:factory`: code of the user's own, which runs when the user names it and not before."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fathometer import atlas
from fathometer.models import load_model
from fathometer.report.page import page_of
from fathometer.results.sounding_file import load
from fathometer.results.store import open_results
from fathometer.survey import read_plan
from soak.security.command import command
from soak.security.shown import sounding
from soak.security.trial import Point, inside

MODULE = "soak_trap_module"
_CODE = """
from pathlib import Path
Path(__file__).with_name("mark").mkdir(exist_ok=True)

def factory():
    from torch import nn
    return nn.Sequential(nn.Linear(4, 5), nn.ReLU())
"""


def user_code_runs_only_when_named(folder: Path) -> Point:
    """Results that name such code are loaded, shown, compared and drawn in a folder where it lies."""
    point = Point("package.module:factory runs when the user names it, and not before")
    mark = folder / "mark"
    (folder / f"{MODULE}.py").write_text(_CODE, "utf-8")
    name = f"{MODULE}:factory"
    results = folder / "results"
    results.mkdir()
    for seed in (0, 1):
        made = sounding("plain", seed)
        facts = made.provenance
        facts = replace(
            facts,
            model={**facts.model, "name": name, "class": f"{MODULE}.Net"},
            settings={**facts.settings, "gauges": [name], "activations": [name]},
        )
        replace(made, provenance=facts).save(results / f"s{seed}.json")
    (folder / "other.toml").write_text('models = ["torchvision:alexnet"]\n[data]\nn = "random:9"\n', "utf-8")
    file, other = str(results / "s0.json"), str(results / "s1.json")
    with inside(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        acts: dict[str, Callable[[], object]] = {
            "load": lambda: load(file),
            "a page": lambda: page_of(load(file)),
            "atlas": lambda: atlas(results),
            "a results folder": lambda: open_results(results),
            "another plan": lambda: read_plan("other.toml"),
        }
        for what, act in acts.items():
            act()
            point.note(not mark.exists() and MODULE not in sys.modules, f"{what} imported it")
        for arguments, code in (
            (["show", file], 0),
            (["compare", file, other, "--allow-mismatch"], 0),
            (["plot", file], 0),
            (["models", "torchvision:alex*"], 0),
            (["survey", "other.toml", "--status"], 0),
            (["sites", f"{MODULE}x:factory"], 2),  # which only looks like it
        ):
            ran = command(*arguments)
            point.note(not mark.exists() and MODULE not in sys.modules, f"{arguments[0]} imported it")
            point.note(ran.code == code, f"{arguments[0]} ended with {ran.code}: {ran.text[-200:]}")
        with _forgotten():
            load_model(name)
            point.note(mark.exists(), "it was named, and did not run")
    return point


@contextmanager
def _forgotten() -> Iterator[None]:
    """Without the module afterwards."""
    try:
        yield
    finally:
        sys.modules.pop(MODULE, None)
