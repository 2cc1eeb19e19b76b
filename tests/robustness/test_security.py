"""Harmful files and names.

Pickles in the place of every file that is read, plans and names that look like paths, names that look like
HTML, terminal commands or markup, and results that name code next to them. It is a failure if code runs, if
a file is written outside the results folder, or if a name becomes an element of a page or a control
character in the terminal. The linter (rules S) refuses calls in the package that could run code from data.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks.records import Row
from fathometer import History, Site, Sounding, atlas, load, measure
from fathometer.cli import main
from fathometer.data import Inputs, open_data
from fathometer.errors import FathometerError
from fathometer.leaky import load_sweep, sweep
from fathometer.models import load_model, load_weights
from fathometer.report.page import page_of
from fathometer.report.page.document import html
from fathometer.results.history import Cost, metrics_frame
from fathometer.results.sounding import from_json, to_json
from fathometer.survey import read_plan, run_survey
from tests.robustness.files import DESIGN, IMAGES, RECIPE, TOKENS, network

# Harmful names of networks, data and files: markup, terminal commands, paths.
NAMES = (
    "<script>window.pwned = 1</script>",
    "</script><script>window.pwned = 1</script>",
    '"><img src=x onerror="window.pwned=1">',
    "' onmouseover='window.pwned=1",
    "<!--",
    "]]>",
    "{{ 7 * 7 }}",
    "${7*7}",
    "datum['x']; window.pwned=1",
    "a\u202egnp.exe",
    "\x1b]0;owned\x07\x1b[2J\x1b[31m",
    "\x9b31m",
    "over\rwritten",
    "[bold red]marked[/bold red]",
    "[/nothing]",
    "\u2028line\u2029",
    "\ud800 half",
    "nul\x00byte",
)
PATHS = (
    *("../../x", "..", "/tmp/x", "~/x", "$HOME/x", "C:\\x", "\\\\host\\share", "CON", "aux.json", "a/b/c"),
    *(".hidden", "x" * 300, "nul\x00byte", "line\nbreak", "-rf", "näme", "*"),
)


class Trap:
    """An object that makes a folder when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (str(self.mark),)


def _plain(name: str) -> Callable[[Path, Trap], object]:
    return lambda place, trap: (place / name).write_bytes(pickle.dumps(trap))


def _saved(name: str, zipped: bool) -> Callable[[Path, Trap], object]:
    return lambda place, trap: torch.save(
        {"state_dict": {"0.weight": trap}}, place / name, _use_new_zipfile_serialization=zipped
    )


def _of_sweep(name: str) -> Callable[[Path, Trap], object]:
    def write(place: Path, trap: Trap) -> None:
        sweep(DESIGN, RECIPE, threads=1, out=place)
        (place / name).write_bytes(pickle.dumps(trap))

    return write


def _objects(place: Path, trap: Trap) -> None:
    np.save(place / "a.npy", np.array([trap], dtype=object), allow_pickle=True)
    np.savez(place / "a.npz", x=np.array([trap], dtype=object))


def _cifar(place: Path, trap: Trap) -> None:
    for name in ("data_batch_1", "test_batch", "batches.meta"):
        (place / name).write_bytes(pickle.dumps(trap))


def _extension(place: Path, trap: Trap) -> None:
    """Write an extension type as pyarrow before 14.0.1 unpickled it while reading."""
    import pyarrow
    from pyarrow import parquet

    metadata = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": pickle.dumps(trap, 0),
    }
    field = pyarrow.field("site", pyarrow.int64(), metadata=metadata)
    schema = pyarrow.schema([field], metadata={"fathometer.sounding": json.dumps({"schema": "x"})})
    parquet.write_table(pyarrow.table({"site": [0]}, schema=schema), place / "s.parquet")


def _data(name: str, inputs: Inputs = IMAGES) -> Callable[[Path], object]:
    return lambda place: list(open_data(place / name, inputs))


def _weights(name: str) -> Callable[[Path], object]:
    return lambda place: load_weights(network(), place / name)


def _journal(place: Path) -> object:
    return measure(network(), torch.randn(40, 4), samples=40, journal=place / "s.journal")


PICKLED: dict[str, tuple[Callable[[Path, Trap], object], Callable[[Path], object]]] = {
    "weights.pt": (_saved("w.pt", True), _weights("w.pt")),
    "weights.pth, the older format": (_saved("w.pth", False), _weights("w.pth")),
    "weights.bin, a bare pickle": (_plain("w.bin"), _weights("w.bin")),
    "weights.safetensors": (_plain("w.safetensors"), _weights("w.safetensors")),
    "objects in .npy": (_objects, _data("a.npy")),
    "objects in .npz": (_objects, _data("a.npz")),
    "a pickle called .npy": (_plain("a.npy"), _data("a.npy")),
    "data.pt": (_saved("a.pt", True), _data("a.pt")),
    "a pickle called .txt": (_plain("a.txt"), _data("a.txt", TOKENS)),
    "CIFAR in its Python version": (_cifar, _data("")),
    "a pickle called .png": (_plain("a.png"), _data("")),
    "sounding.json": (_plain("s.json"), lambda place: load(place / "s.json")),
    "sounding.parquet": (_plain("s.parquet"), lambda place: load(place / "s.parquet")),
    "an extension type in Parquet": (_extension, lambda place: load(place / "s.parquet")),
    "journal": (_plain("s.journal"), _journal),
    "plan.toml": (_plain("plan.toml"), lambda place: read_plan(place / "plan.toml")),
    "results folder": (_plain("a-0123456789abcdef01234567.json"), atlas),
    "sweep.json": (_of_sweep("sweep.json"), load_sweep),
    "network-000.safetensors": (_of_sweep("network-000.safetensors"), load_sweep),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PICKLED)
def test_nothing_is_unpickled(name: str, tmp_path: Path) -> None:
    write, read = PICKLED[name]
    trap = Trap(tmp_path / "mark")
    pickle.loads(pickle.dumps(trap))
    trap.mark.rmdir()  # the trap works
    place = tmp_path / "place"
    place.mkdir()
    write(place, trap)
    with suppress(FathometerError):
        read(place)
    assert not trap.mark.exists()


def sounding(name: str, seed: int = 0) -> Sounding:
    """Make a sounding in which the network, sites, data, a gauge and versions have this name."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 5), nn.Tanh())
    found = measure(net, torch.randn(40, 4), samples=20, gauges="affinity,cka", name=name)
    whole = name.encode("utf-8", "replace").decode()  # a table cannot hold half a character
    sites = tuple(Site(f"{whole}{site.module}", whole, 1, site.order, site.is_module) for site in found.sites)
    names = dict(zip((site.name for site in found.sites), (site.name for site in sites), strict=True))
    records = found.records.assign(site=found.records["site"].map(names))
    records[f"own {whole}"] = 1.5
    facts = found.provenance
    model = {**facts.model, "name": name, "weights": name, "class": name, name: name, "family": name}
    changed = replace(
        facts,
        model=model,
        data={**facts.data, "name": name},
        versions={**facts.versions, name: name},
        device=name,
        date=name,
    )
    return from_json(to_json(Sounding(sites, records, changed)))  # as a file gives it


class _Elements(HTMLParser):
    """Collects the elements of a page and the names of their attributes, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(sorted(name for name, _ in attrs))))

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", (data,)))


def _pages(name: str) -> dict[str, str]:
    one, two = sounding(name), sounding(name, 1)
    named = {f"{one.sites[0].operator} {place}": found for place, found in enumerate((one, two))}
    metrics = metrics_frame({one.sites[0].operator: [(1, 0.5)]})
    history = History((1, 2), (one, one), metrics, Cost(), ((1, name),))
    with (
        mock.patch("fathometer.report.page.document.chart_library", return_value=""),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # the soundings differ in their data
        pages = {
            "one sounding": page_of(one, title=name),
            "several": page_of(named, allow_mismatch=True),
            "an atlas": page_of(named, atlas=True),
            "a history": page_of(history),
        }
        found = {kind: html(page) for kind, page in pages.items()}
    return {**found, "a notebook": one._repr_html_(), "a notebook, a history": history._repr_html_()}


def test_no_name_becomes_an_element_of_a_page(full: bool, row: Row) -> None:
    assert _Elements('<p id="a">').found != _Elements('<p id="a" onclick="b">').found
    expected = {kind: _Elements(text).found for kind, text in _pages("plain").items()}
    names = NAMES if full else NAMES[1::10]
    faults = [
        f"{name!r} on the page of {kind}"
        for name in names
        for kind, text in _pages(name).items()
        if _Elements(text).found != expected[kind]
    ]
    row |= {"tried": "names on pages", "names": len(names), "failed": len(faults)}
    assert faults == []


NETS = """
from pathlib import Path
from torch import nn

def name():
    return Path(__file__).with_name("name.txt").read_bytes().decode()

def small():
    net = nn.Sequential(nn.Linear(4, 5))
    for number, module in enumerate((nn.ReLU(), nn.Tanh())):
        net.add_module(f"{name()}{number}".replace(".", "_"), module)
    return net

def failing():
    raise ValueError(name())
"""
_CONTROLS = {
    *map(chr, range(0x20)),
    *map(chr, range(0x7F, 0xA0)),
    *"\u200e\u200f\u202a\u202b\u202c\u202d\u202e",
}


def command(*arguments: str) -> tuple[int, str]:
    """Run `fathometer` in this process; returns the exit code and all output."""
    written = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["fathometer", *arguments]),
        mock.patch.dict(os.environ, {"COLUMNS": "300"}),
        redirect_stdout(written),
        redirect_stderr(written),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0), written.getvalue()
    return 0, written.getvalue()


def _commands(folder: Path, name: str) -> Iterator[tuple[list[str], int]]:
    """Commands in whose output the name appears, with their exit codes."""
    whole = name.encode("utf-8", "replace").decode()
    file_name = whole.replace("/", "|").replace("\0", "|")
    Path("name.txt").write_bytes(whole.encode())
    here = folder / file_name
    here.mkdir(parents=True)
    one, two = (str(sounding(name, seed).save(here / f"{file_name}{seed}.json")) for seed in (0, 1))
    broken = here / "broken.json"
    content = json.loads(Path(one).read_text("utf-8"))
    broken.write_text(json.dumps({**content, "version": name}), "utf-8")
    yield ["show", one], 0
    yield ["show", one, "--gauge", name], 2
    yield ["show", str(broken)], 2
    yield ["compare", "networks", one, two, "--allow-mismatch"], 0
    yield ["plot", one, "--out", str(here / "plot.png")], 0
    yield ["report", one, "--out", str(here / "report.html"), "--title", name], 0
    data = ["--weights", "none", "--data", "random:40", "--samples", "20", "--gauges", "norm"]
    yield ["sites", "harmful_nets:small"], 0
    yield ["measure", "harmful_nets:small", *data, "--out", str(here / "m.json")], 0
    yield ["measure", "harmful_nets:small", "--weights", "none", "--data", f"no folder {name}"], 2
    quoted, plan = json.dumps(whole), here / "plan.toml"
    lines = [
        'weights = "none"',
        f'[data]\n{quoted} = "random:40"',
        "[settings]\nsamples = 20\ngauges = 'norm'",
        f'[families.{quoted}]\nmodels = ["harmful_nets:small", "harmful_nets:failing"]',
    ]
    plan.write_text("\n".join(lines), "utf-8")
    yield ["survey", "run", str(plan), "--out", str(here / "results")], 1
    yield ["models", f"torchvision:no {name}"], 2


@pytest.mark.filterwarnings("ignore")
def test_no_control_character_of_a_name_reaches_the_terminal(full: bool, row: Row, tmp_path: Path) -> None:
    (tmp_path / "harmful_nets.py").write_text(NETS, "utf-8")
    names, faults, tried = NAMES if full else NAMES[11:12], [], 0
    with chdir(tmp_path):
        for place, name in enumerate(names):
            for arguments, expected in _commands(tmp_path / str(place), name):
                code, text = command(*arguments)
                tried += 1
                if found := sorted((_CONTROLS - {"\n", "\t"}) & set(text)):
                    faults.append(f"{arguments[0]} printed {found[:3]} of {name!r}")
                if code != expected:
                    faults.append(
                        f"{arguments[0]} ended with {code}, not {expected}, for {name!r}: {text[-200:]}"
                    )
                if name.startswith("[") and arguments[0] == "models" and name not in text:
                    faults.append(f"{arguments[0]} took {name!r} as markup")
    sys.modules.pop("harmful_nets", None)
    row |= {"tried": f"names in the terminal, {tried} commands", "names": len(names), "failed": len(faults)}
    assert faults == []


def _everything(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): path.lstat().st_mtime_ns
        for path in folder.rglob("*")
        if not path.is_dir() and "__pycache__" not in str(path)
    }


@pytest.mark.filterwarnings("ignore")
def test_a_survey_writes_into_its_results_folder_alone(full: bool, row: Row, tmp_path: Path) -> None:
    names: Sequence[str] = PATHS if full else PATHS[:4]
    project, victim = tmp_path / "home" / "user" / "project", tmp_path / "victim.json"
    project.mkdir(parents=True)
    victim.write_text("mine", "utf-8")
    (project / "name.txt").write_text("/etc/x", "utf-8")
    (project / "harmful_nets.py").write_text(NETS, "utf-8")
    lines = ['models = ["harmful_nets:small"]', 'weights = "none"', "[data]"]
    lines += [f'{json.dumps(name)} = "random:{40 + place}"' for place, name in enumerate(names)]
    lines += [f"[settings.{json.dumps(names[0])}]\nsamples = 30\ngauges = 'norm'"]
    (project / "plan.toml").write_text("\n".join(lines), "utf-8")
    before = _everything(tmp_path)
    with chdir(project):
        outcome = run_survey(read_plan("plan.toml"), project / "results")
        assert not outcome.failed
        written = sorted((project / "results").glob("*.json"))
        assert len(written) == len(names)
        assert all(len(path.name) < 160 and path.name.isprintable() for path in written)
        written[0].unlink()
        written[0].symlink_to(victim)
        run_survey(read_plan("plan.toml"), project / "results")
    sys.modules.pop("harmful_nets", None)
    after = {name: time for name, time in _everything(tmp_path).items() if "/results/" not in name}
    assert after == before
    assert victim.read_text("utf-8") == "mine"
    row |= {"tried": "paths as names of data in a plan", "names": len(names), "failed": 0}


@pytest.mark.filterwarnings("ignore")
def test_user_code_runs_only_when_it_is_named(tmp_path: Path) -> None:
    """Results that name code are loaded, shown, compared and drawn in a folder where that code is."""
    mark = tmp_path / "mark"
    code = 'from pathlib import Path\nPath(__file__).with_name("mark").mkdir()\n'
    code += "def factory():\n    from torch import nn\n    return nn.Sequential(nn.Linear(4, 5), nn.ReLU())\n"
    (tmp_path / "trap_module.py").write_text(code, "utf-8")
    results = tmp_path / "results"
    results.mkdir()
    name = "trap_module:factory"
    for seed in (0, 1):
        made = sounding("plain", seed)
        facts = made.provenance
        model = {**facts.model, "name": name, "class": "trap_module.Net"}
        settings = {**facts.settings, "gauges": [name], "activations": [name]}
        replace(made, provenance=replace(facts, model=model, settings=settings)).save(
            results / f"s{seed}.json"
        )
    file, other = str(results / "s0.json"), str(results / "s1.json")
    with chdir(tmp_path):
        page_of(load(file))
        atlas(results)
        for arguments in (
            ["show", file],
            ["compare", "networks", file, other, "--allow-mismatch"],
            ["plot", file],
        ):
            assert command(*arguments)[0] == 0
        assert not mark.exists()
        assert "trap_module" not in sys.modules
        load_model(name)
        assert mark.exists()
    sys.modules.pop("trap_module", None)
    shutil.rmtree(mark)
