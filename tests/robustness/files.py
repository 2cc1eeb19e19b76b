"""A real file of every kind that fathometer reads, and a function that reads and checks it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

from fathometer import History, Sounding, atlas, linearize, load, load_history, measure, similarity_map
from fathometer.compare import read_facts
from fathometer.data import Inputs, open_data
from fathometer.leaky import Design, LeakySweep, Phase, Recipe, Teacher, load_sweep, sweep
from fathometer.models import load_model, load_weights
from fathometer.report.page import page_of
from fathometer.results.history import Cost, metrics_frame
from fathometer.results.sounding import to_json
from fathometer.survey import parse_plan, read_plan, run_survey, tasks_of
from tests.models.files import KERNEL, convolution, save_onnx

Read: TypeAlias = Callable[[Path], object]

IMAGES, CIFAR = Inputs("image", (3, 8, 8)), Inputs("image", (3, 32, 32))
TOKENS = Inputs("tokens", (8,), vocabulary=300, tokenize=lambda text: list(text.encode()))
DESIGN = Design(2.0, 3, 5, teacher=Teacher((4, 2, 4)), samples=12, test_samples=4)
RECIPE = Recipe((Phase("adam", 8),))


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        name: for the reader.
        file: the file, as a pattern in the folder that `make` fills.
        form: its structure, as `mutations.mutate` takes it.
        make: writes it into an empty folder.
        read: reads it from a folder, and returns what was read in a form that can be compared. It raises a
            `FathometerError` for a broken file, and an `AssertionError` for values that cannot be.
        is_remade: whether what is missing in a broken file is measured again.
    """

    name: str
    file: str
    form: str
    make: Read
    read: Read
    is_remade: bool = False


def network() -> nn.Module:
    """Make a small network."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 5), nn.Tanh())


def sounding() -> Sounding:
    """Make a small sounding."""
    data = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    return measure(network(), data, samples=30, name="net", map="cka")


def checked(found: Sounding, place: Path) -> str:
    """Check that a sounding can be shown, drawn, saved and loaded again; loading checks the ranges."""
    records = found.records
    assert (records[["n", "d"]] >= 1).all(axis=None)
    assert not records.duplicated(["site", "batch"]).any()
    repr(found)
    found._repr_html_()
    page_of(found)
    again = load(found.save(place / "copy.json"))
    assert again.sites == found.sites
    assert again.provenance == found.provenance
    assert again.records.equals(records)
    return to_json(found)


def _history(folder: Path) -> None:
    metrics = metrics_frame({"loss": [(10, 0.5), (20, 0.25)], "lr": [(10, 1e-3)]})
    made = History((10, 20), (sounding(), sounding()), metrics, Cost(1.5, 30.0, 0.1), ((15, "busy"),))
    made.save(folder / "h.json")


def _read_history(place: Path) -> object:
    found = load_history(place / "h.json")
    assert list(found.steps) == sorted(set(found.steps))
    repr(found)
    page_of(found)
    again = load_history(found.save(place / "copy.json"))
    assert again.steps == found.steps
    assert all(a.records.equals(b.records) for a, b in zip(again.soundings, found.soundings, strict=True))
    return found.steps, found.missed, found.metrics.to_csv(), [to_json(entry) for entry in found.soundings]


def _map(folder: Path) -> None:
    data = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    similarity_map(network(), network(), data, samples=30).save(folder / "m.json")


def _read_map(place: Path) -> object:
    found = load(place / "m.json")
    repr(found)
    page_of(found)
    found.plot()
    again = load(found.save(place / "copy.json"))
    assert again.values.equals(found.values)
    assert again.provenance == found.provenance
    return found.values.to_csv(), found.first, found.second, found.provenance


def _linearized(folder: Path) -> None:
    data = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    made: Any = linearize(network(), data, budget=1)
    made.linearized.save(folder / "l.json")


def _read_linearized(place: Path) -> object:
    found = load(place / "l.json")
    repr(found)
    page_of(found)
    found.plot()
    again = load(found.save(place / "copy.json"))
    assert again.curve.equals(found.curve)
    assert again.table.equals(found.table)
    return found.curve.to_csv(), found.table.to_csv(), found.sites, found.divergence_name, found.provenance


def _measure(place: Path, stop: int = 1000) -> Sounding:
    def interrupt(done: int, total: int | None) -> None:
        del total
        if done >= stop:
            raise KeyboardInterrupt

    data = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    journal = place / "s.journal"
    return measure(
        network(), data, samples=15, batch_size=15, name="net", journal=journal, progress=interrupt, map="cka"
    )


def _journal(folder: Path) -> None:
    with suppress(KeyboardInterrupt):
        _measure(folder, stop=45)


def _read_journal(place: Path) -> object:
    return _measure(place).records.to_csv()


PLAN = """\
seeds = [0, 1]
weights = ["none"]
models = ["torchvision:alexnet", "torchvision:resnet*"]
without = ["torchvision:resnet[13]*"]
[data]
noise = "random:640"
photos = "photos"
[settings]
samples = 16
batches = 2
gauges = ["affinity", "norm"]
reduction = "mean"
leftover = "drop"
[run]
batch_size = 4
device = "cpu"
threads = 1
gpus = 0.5
memory = 1.5
[families.VGG]
models = ["torchvision:vgg11"]
workers = 0
[facts."torchvision:alexnet"]
accuracy = 56.5
"""


def _plan(folder: Path) -> None:
    (folder / "photos").mkdir()
    (folder / "plan.toml").write_text(PLAN, "utf-8")


def _read_plan(place: Path) -> object:
    plan = read_plan(place / "plan.toml")
    assert len(plan) >= 1
    assert all(settings.samples >= 2 for settings in plan.settings.values())
    stems = [task.stem for task in tasks_of(plan)]
    assert all(Path(stem).name == stem and len(stem) < 120 for stem in stems)
    return stems


SURVEY = """\
models = ["tests.robustness.nets:small", "tests.robustness.nets:failing"]
weights = "none"
data = { noise = "random:20" }
settings = { samples = 10, gauges = ["affinity"] }
run = { batch_size = 10, threads = 1 }
"""


def _survey(folder: Path) -> None:
    run_survey(parse_plan(SURVEY), folder / "out")


def _read_survey(place: Path) -> object:
    """Read what is there, then run the survey again: it measures what is broken."""
    atlas(place / "out")
    run_survey(parse_plan(SURVEY), place / "out")
    (path,) = (place / "out").glob("*.json")
    return load(path).records.to_csv()


def checked_sweep(found: LeakySweep, place: Path) -> object:
    """Check that a sweep has finite values and can be saved."""
    for run in found.runs:
        state = run.net.state_dict()
        assert run.diverged is not None or all(bool(tensor.isfinite().all()) for tensor in state.values())
        assert abs(float(run.net.steps.sum()) - 1) < 1e-6
        assert list(run.history["epoch"]) == sorted(run.history["epoch"])
    assert len(found.table) == len(found.runs)
    found.save(place / "copy")
    runs = found.runs
    return [[r.history.to_csv(), *(v.tolist() for v in r.net.state_dict().values())] for r in runs]


def _leaky(folder: Path) -> None:
    sweep(DESIGN, RECIPE, threads=1, out=folder / "run")


def _checkpoint(folder: Path) -> None:
    def interrupt(done: int, total: int | None, note: str = "") -> None:
        del total, note
        if done >= 4:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        sweep(DESIGN, RECIPE, threads=1, out=folder / "run", progress=interrupt)


def _read_leaky(place: Path) -> object:
    return checked_sweep(load_sweep(place / "run"), place)


def _read_checkpoint(place: Path) -> object:
    return checked_sweep(sweep(DESIGN, RECIPE, threads=1, out=place / "run", resume=True), place)


def _batches(name: str, inputs: Inputs) -> Read:
    def read(place: Path) -> object:
        found = open_data(place / name, inputs, batch_size=2)
        json.dumps(found.description, allow_nan=False)
        assert len(found) < 10**7
        for batch, _ in zip(found, range(20), strict=False):
            values = batch["input_ids"] if isinstance(batch, dict) else batch
            values = values[0] if isinstance(values, tuple) else values
            assert isinstance(values, torch.Tensor)
            assert tuple(values.shape[1:]) == inputs.shape
        return len(found)

    return read


def _data(folder: Path) -> None:
    """Write a file of every kind of data."""
    from PIL import Image

    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (5, 8, 8, 3)).astype(np.uint8)
    np.save(folder / "a.npy", random.random((5, 3, 8, 8), np.float32))
    np.savez_compressed(folder / "a.npz", x=pixels, y=np.arange(5))
    np.save(folder / "t.npy", random.integers(0, 300, (5, 8)))
    records = random.integers(0, 256, (4, 3073)).astype(np.uint8)
    records[:, 0] = range(4)
    (folder / "cifar").mkdir()
    records.tofile(folder / "cifar" / "test_batch.bin")
    (folder / "photos").mkdir()
    for name in ("a.jpg", "b.png"):
        Image.fromarray(pixels[0]).save(folder / "photos" / name)
    (folder / "photos" / "labels.csv").write_text("file,class_index\na.jpg,3\nb.png,1\n", "utf-8")
    (folder / "book.txt").write_text("Call me Ishmael. Some years ago – never mind how long …\n" * 3, "utf-8")


def _weights(folder: Path) -> None:
    from safetensors.torch import save_file

    torch.save({"state_dict": network().state_dict(), "epoch": 3}, folder / "w.pt")
    save_file(network().state_dict(), folder / "w.safetensors")


def _read_weights(name: str) -> Read:
    def read(place: Path) -> object:
        net = network()
        load_weights(net, place / name)
        return [value.tolist() for value in net.state_dict().values()]

    return read


def _facts(folder: Path) -> None:
    rows = "network,family,accuracy,year", "alexnet,AlexNet,56.5,2012", "resnet18,ResNet,69.8,2015"
    (folder / "networks.csv").write_text("\n".join(rows) + "\n", "utf-8")


def _onnx(folder: Path) -> None:
    save_onnx(folder / "net.onnx", convolution(), ["n", 3, 8, 8], {"w": KERNEL})


def _read_onnx(place: Path) -> object:
    model = load_model(f"onnx:{place / 'net.onnx'}")
    noise = open_data("random:8", model.inputs, batch_size=4)
    return checked(measure(model.module, noise, samples=8, gauges=["norm"], batch_size=4), place)


def _sounding(name: str) -> tuple[Read, Read]:
    return lambda f: sounding().save(f / name), lambda f: checked(load(f / name), f)


def _read_facts(place: Path) -> object:
    return read_facts(place / "networks.csv").to_csv()


_CHECKPOINT = "run/checkpoint-000.safetensors"
RESULTS = (
    Kind("sounding, JSON", "s.json", "json", *_sounding("s.json")),
    Kind("sounding, Parquet", "s.parquet", "bytes", *_sounding("s.parquet")),
    Kind("history of a training", "h.json", "json", _history, _read_history),
    Kind("map of two networks", "m.json", "json", _map, _read_map),
    Kind("linearized network", "l.json", "json", _linearized, _read_linearized),
    Kind("journal of a measurement", "s.journal", "jsonl", _journal, _read_journal, True),
    Kind("sounding of a survey", "out/*.json", "json", _survey, _read_survey, True),
    Kind("failure of a survey", "out/failed/*.json", "json", _survey, _read_survey, True),
    Kind("plan of a leaky sweep", "run/sweep.json", "json", _leaky, _read_leaky),
    Kind("task of a leaky sweep", "run/task-000.safetensors", "safetensors", _leaky, _read_leaky),
    Kind("network of a leaky sweep", "run/network-000.safetensors", "safetensors", _leaky, _read_leaky),
    Kind("checkpoint of a leaky sweep", _CHECKPOINT, "safetensors", _checkpoint, _read_checkpoint),
)
"""Files that fathometer wrote."""

INPUTS = (
    Kind("plan of a survey", "plan.toml", "toml", _plan, _read_plan),
    Kind("array, .npy", "a.npy", "bytes", _data, _batches("a.npy", IMAGES)),
    Kind("arrays, .npz", "a.npz", "bytes", _data, _batches("a.npz", IMAGES)),
    Kind("token ids, .npy", "t.npy", "bytes", _data, _batches("t.npy", TOKENS)),
    Kind("CIFAR-10, binary", "cifar/test_batch.bin", "bytes", _data, _batches("cifar", CIFAR)),
    Kind("image, JPEG", "photos/a.jpg", "bytes", _data, _batches("photos", IMAGES)),
    Kind("image, PNG", "photos/b.png", "bytes", _data, _batches("photos", IMAGES)),
    Kind("labels.csv", "photos/labels.csv", "bytes", _data, _batches("photos", IMAGES)),
    Kind("text", "book.txt", "bytes", _data, _batches("book.txt", TOKENS)),
    Kind("weights, torch.save", "w.pt", "bytes", _weights, _read_weights("w.pt")),
    Kind("weights, safetensors", "w.safetensors", "safetensors", _weights, _read_weights("w.safetensors")),
    Kind("facts of networks, CSV", "networks.csv", "bytes", _facts, _read_facts),
    Kind("network, ONNX", "net.onnx", "bytes", _onnx, _read_onnx),
)
"""Files that others wrote."""
