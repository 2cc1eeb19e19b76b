"""Evil names through every verb: of networks, sites, data, families, files, in results and in errors."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from unittest import mock

from fathometer.leaky import Design, Phase, Recipe, Teacher, sweep
from fathometer.progress import progress_bar, visible
from soak.security.command import command
from soak.security.shown import sounding
from soak.security.trial import Point, inside

MODULE = "soak_evil_names"
_NETS = """
from pathlib import Path
from torch import nn

def name():
    return Path(__file__).with_name("name.txt").read_bytes().decode()

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
    def forward(self, x):
        return x + self.inner(x).relu()

def named(first, *others):
    net = nn.Sequential(first)
    for number, module in enumerate(others):
        net.add_module(f"{name()}{number}".replace(".", "_"), module)
    return net

def small():
    return named(nn.Linear(4, 5), nn.ReLU(), nn.Tanh())

def blocks():
    return named(nn.Linear(4, 4), Block(), Block())

def failing():
    raise ValueError(name())
"""
_CONTROLS = {
    *map(chr, range(0x20)),
    *map(chr, range(0x7F, 0xA0)),
    *"\u200e\u200f\u202a\u202b\u202c\u202d\u202e",
} - {"\n", "\t"}


def the_terminal_is_not_commanded(folder: Path, names: Sequence[str]) -> Point:
    """All that every verb writes where such names come by, and how it ends."""
    point = Point("no control character or markup of a name reaches the terminal")
    (folder / f"{MODULE}.py").write_text(_NETS, "utf-8")
    with inside(folder):
        try:
            for place, name in enumerate(names):
                for arguments, code in _trials(folder / str(place), name):
                    ran = command(*arguments)
                    what = " ".join(arguments[:2]) if arguments[0] in ("leaky", "survey") else arguments[0]
                    _judge(point, name, what, ran.text)
                    told = f"{what} ended with {ran.code}, not {code}, for {name!r}: {ran.text[-200:]}"
                    point.note(ran.code == code, told)
                _judge_progress(point, name)
        finally:
            sys.modules.pop(MODULE, None)
    return point


def _trials(folder: Path, name: str) -> Iterator[tuple[list[str], int]]:
    """Commands, with the exit code that each should have."""
    whole = name.encode("utf-8", "replace").decode()
    file_name = whole.replace("/", "|").replace("\0", "|")
    folder.mkdir()
    Path("name.txt").write_bytes(whole.encode())
    here = folder / file_name
    here.mkdir()
    one, two = (str(sounding(name, seed).save(here / f"{file_name}{seed}.json")) for seed in (0, 1))
    broken = here / "broken.json"
    content = json.loads(Path(one).read_text("utf-8"))
    broken.write_text(json.dumps({**content, "version": name}), "utf-8")
    yield ["show", one], 0
    yield ["show", one, "--gauge", f"own {whole}"], 0
    yield ["show", one, "--gauge", name], 2
    yield ["show", str(broken)], 2
    yield ["show", f"{name}.json"], 2
    yield ["compare", one, two, "--allow-mismatch"], 0
    yield ["compare", one, two, "--over", "weights", "--allow-mismatch"], 0
    yield ["plot", one, "--out", str(here / "plot.png")], 0
    yield ["report", one, "--out", str(here / "report.html"), "--title", name], 0
    small, blocks = f"{MODULE}:small", f"{MODULE}:blocks"
    data = ["--weights", "none", "--data", "random:40", "--samples", "20"]
    yield ["sites", small], 0
    yield ["sites", f"{MODULE}:{name}"], 2
    yield ["measure", small, *data, "--gauges", "norm", "--out", str(here / "m.json")], 0
    yield ["measure", small, "--weights", "none", "--data", f"no folder {name}"], 2
    yield ["path", blocks, *data, "--out", str(here / "p.json")], 0
    yield from _of_a_survey(here, whole)
    yield from _of_a_sweep(here, name)
    yield ["models", f"torchvision:no {name}"], 2
    yield ["activations", f"no {name}"], 2
    yield ["reproduce", f"no {name}"], 2


def _of_a_survey(folder: Path, name: str) -> Iterator[tuple[list[str], int]]:
    """A family that can be measured, and one that fails, with the name as its reason."""
    quoted = json.dumps(name)
    plan, out = folder / "plan.toml", str(folder / "results")
    lines = [
        'weights = "none"',
        f'[data]\n{quoted} = "random:40"',
        "[settings]\nsamples = 20\ngauges = 'norm'",
        f'[families.{quoted}]\nmodels = ["{MODULE}:small"]',
        f'[families.{json.dumps(f"{name} failing")}]\nmodels = ["{MODULE}:failing"]',
    ]
    plan.write_text("\n".join(lines), "utf-8")
    yield ["survey", str(plan), "--out", out, "--status"], 0
    yield ["survey", str(plan), "--out", out], 1
    yield ["survey", str(plan), "--out", out, "--status"], 0
    plan.write_text(f"{quoted} = 3\n" + "\n".join(lines), "utf-8")
    yield ["survey", str(plan), "--out", out], 2


def _of_a_sweep(folder: Path, name: str) -> Iterator[tuple[list[str], int]]:
    """A folder that is called so, of a device that is; then with a design that is."""
    run = folder / "run"
    design = Design(2.0, 3, 5, teacher=Teacher((4, 2, 4)), samples=12, test_samples=4)
    sweep(design, Recipe((Phase("adam", 2),)), threads=1, out=run)
    file = run / "sweep.json"
    plan = json.loads(file.read_text("utf-8"))
    plan["provenance"]["device"] = name
    file.write_text(json.dumps(plan), "utf-8")
    yield ["leaky", "measure", str(run)], 0
    yield ["report", str(run), "--out", str(folder / "run.html")], 0
    plan["designs"][0]["scheme"] = name
    file.write_text(json.dumps(plan), "utf-8")
    yield ["leaky", "measure", str(run)], 2


def _judge(point: Point, name: str, verb: str, text: str) -> None:
    found = sorted(_CONTROLS & set(text))
    point.note(not found, f"{verb} printed {found[:3]} of {name!r}")
    if name.startswith("[") and verb == "models":  # which says all of it, on one line
        point.note(name in text, f"{verb} took {name!r} as markup")
    text.encode()  # a terminal can be sent it


def _judge_progress(point: Point, name: str) -> None:
    """What a bar is for and how it goes, on a terminal, to which rich sends its own commands."""
    written = io.StringIO()
    with (
        mock.patch.dict(os.environ, {"FORCE_COLOR": "1", "COLUMNS": "400"}),
        redirect_stderr(written),
        progress_bar(f"measuring {name}") as show,
    ):
        show(1, 2, name)
    point.note(written.getvalue().count(visible(name)) >= 2, f"a progress bar did not say {name!r} as it is")
