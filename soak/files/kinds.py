"""A real file of every kind that fathometer reads, and how it is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from torch import nn

from fathometer import History, Sounding, atlas, measure
from fathometer.cli.leaky.own_data import read_own_task
from fathometer.compare import read_facts
from fathometer.data import open_data
from fathometer.data.inputs import Inputs
from fathometer.leaky import Design, LeakySweep, Phase, Recipe, Teacher, load_sweep, sweep
from fathometer.models.weights import load_weights
from fathometer.results.history import Cost, metrics_frame
from fathometer.results.history_file import load as load_history
from fathometer.results.provenance import Provenance
from fathometer.results.sounding_file import load
from fathometer.survey import Store, Task, parse_plan, read_plan, tasks_of
from fathometer.survey.store import Failure
from fathometer.survey.tasks import labelled
from papers import read_verdict
from papers.claim import Answer, Claim
from papers.verdict import Verdict
from soak.files.checks import check_batch, check_history, check_sounding, check_sweep, require
from soak.files.networks import gguf_network, onnx_network, transformers_network

Reader: TypeAlias = Callable[[Path], None]

IMAGES = Inputs("image", (3, 8, 8))
TOKENS = Inputs("tokens", (8,), vocabulary=300, tokenize=lambda text: list(text.encode()))


@dataclass(frozen=True)
class Kind:
    """One kind of file.

    Attributes:
        name: of it.
        file: which is mutated, in the folder that `make` fills.
        form: `json`, `jsonl` (a line each), `toml`, `safetensors` or `bytes`.
        make: writes the real thing into an empty folder, and gives what reads it from a folder and checks it.
        share: of all trials, against 1 for the others.
    """

    name: str
    file: str
    form: str
    make: Callable[[Path], Reader]
    share: float = 1.0


def network() -> nn.Module:
    """Small, with an activation of its own and a functional one."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 5), nn.Tanh())


def sounding(name: str = "net") -> Sounding:
    """A real one."""
    data = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    return measure(network(), data, samples=30, name=name)


def _sounding(suffix: str) -> Callable[[Path], Reader]:
    def make(folder: Path) -> Reader:
        sounding().save(folder / f"s{suffix}")

        def read(place: Path) -> None:
            path = place / f"s{suffix}"
            check_sounding(load(path), path)

        return read

    return make


def _history(folder: Path) -> Reader:
    steps = {10: sounding(), 20: sounding()}
    metrics = metrics_frame({"loss": [(10, 0.5), (20, 0.25)], "lr": [(10, 1e-3)]})
    found = History(tuple(steps), tuple(steps.values()), metrics, Cost(1.5, 30.0, 0.1), ((15, "busy"),))
    found.save(folder / "h.json")
    return lambda place: check_history(load_history(place / "h.json"), place / "h.json")


def _journal(folder: Path) -> Reader:
    def measured(place: Path, stop: int = 1000) -> Sounding:
        def told(done: int, total: int | None) -> None:
            del total
            if done >= stop:
                raise KeyboardInterrupt

        data = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
        return measure(
            network(), data, samples=15, batch_size=15, name="net", journal=place / "s.journal", progress=told
        )

    with suppress(KeyboardInterrupt):
        measured(folder, stop=45)

    def read(place: Path) -> None:
        found = measured(place)
        check_sounding(load(found.save(place / "s.json")), place / "s.json")

    return read


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
dtype = "float32"
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


def _plan(folder: Path) -> Reader:
    (folder / "photos").mkdir()
    (folder / "plan.toml").write_text(PLAN, "utf-8")

    def read(place: Path) -> None:
        plan = read_plan(place / "plan.toml")
        require(len(plan) >= 1, "nothing to measure")
        require(all(0 <= seed < 2**63 for seed in plan.seeds), "a seed that is none")
        for settings in plan.settings.values():
            require(settings.samples >= 2 and (settings.batches or 1) >= 1, "counts that cannot be")
        for family in plan.families:
            require(family.run.batch_size >= 1 and family.run.retries >= 0, "options that cannot be")
            require(family.run.memory is None or 0 <= family.run.memory < float("inf"), "memory")
        for task in tasks_of(plan):
            stem = Path(task.stem)
            require(stem.name == task.stem and len(task.stem) < 120, f"a file called {task.stem!r}")

    return read


def _store(below: str) -> Callable[[Path], Reader]:
    def make(folder: Path) -> Reader:
        task = _task()
        Store(folder / "out").fail(task, Failure.of(ValueError("why"), task)) if below else None
        if not below:
            Store(folder / "out").keep(task, labelled(sounding(), task))
        (written,) = (folder / "out" / below).glob("*.json")
        written.rename(written.with_name(f"s-{task.address}.json"))

        def read(place: Path) -> None:
            store = Store(place / "out")
            store.standing(task)
            table = atlas(place / "out")
            require(len(table) <= 1, "more soundings than there are files")
            failure = store.failure(task)
            require(failure is None or isinstance(failure.message, str), "a failure without words")
            found = store.sounding(task)
            if found is not None:
                check_sounding(found, place / "s.json")

        return read

    return make


def _task() -> Task:
    return tasks_of(parse_plan('models = ["torchvision:alexnet"]\nweights = "none"\n[data]\nn = "random:9"'))[
        0
    ]


DESIGN = Design(2.0, 3, 5, teacher=Teacher((4, 2, 4)), samples=12, test_samples=4)
RECIPE = Recipe((Phase("adam", 8),))


def _trained() -> LeakySweep:
    return sweep(DESIGN, RECIPE, threads=1)


def _leaky(folder: Path) -> Reader:
    _trained().save(folder / "run")
    return lambda place: check_sweep(load_sweep(place / "run"), place / "run")


def _checkpoint(folder: Path) -> Reader:
    def interrupted(done: int, total: int | None, note: str = "") -> None:
        del total, note
        if done >= 4:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        sweep(DESIGN, RECIPE, threads=1, out=folder / "run", progress=interrupted)

    def read(place: Path) -> None:
        found = sweep(DESIGN, RECIPE, threads=1, out=place / "run", resume=True)
        check_sweep(found, place / "run")

    return read


def _verdict(folder: Path) -> Reader:
    claims = {"one": Claim("it does", "whether it does", False), "two": Claim("ours", "so", True)}
    answers = {"one": Answer(True, "it did", {"value": 1.5}), "two": Answer(None, "?", {})}
    facts = Provenance(versions={"python": "3"})
    made = Verdict(
        "item", "Title", "small", claims, answers, ("note",), "cmd", "cpu", "now", 1.0, facts.versions
    )
    made.save(folder / "verdict.json")

    def read(place: Path) -> None:
        found = read_verdict(place / "verdict.json")
        require(
            found.outcome in ("holds", "holds in part", "does not hold", "not decided", "not run"), "outcome"
        )
        require(0 <= found.seconds < float("inf"), "seconds that cannot be")
        found.summary  # noqa: B018
        found.save(place / "copy.json")
        require(read_verdict(place / "copy.json") == found, "another verdict when read again")

    return read


def _batches(source: Path, inputs: Inputs) -> None:
    found = open_data(source, inputs, batch_size=2)
    json.dumps(found.description, allow_nan=False)
    require(len(found) < 10**7, f"{len(found)} samples")
    for number, batch in enumerate(found):
        check_batch(batch, inputs.shape)
        if number == 20:
            break


def _array(name: str, inputs: Inputs) -> Callable[[Path], Reader]:
    def make(folder: Path) -> Reader:
        drawn = np.random.default_rng(0)
        if inputs.kind == "tokens":
            np.save(folder / name, drawn.integers(0, 300, (5, 8)))
        elif name.endswith(".npy"):
            np.save(folder / name, drawn.random((5, 3, 8, 8), np.float32))
        else:
            pixels = drawn.integers(0, 256, (5, 8, 8, 3)).astype(np.uint8)
            np.savez_compressed(folder / name, x=pixels, y=np.arange(5))
        return lambda place: _batches(place / name, inputs)

    return make


def _cifar(folder: Path) -> Reader:
    drawn = np.random.default_rng(0)
    records = drawn.integers(0, 256, (4, 3073)).astype(np.uint8)
    records[:, 0] = range(4)
    records.tofile(folder / "test_batch.bin")
    return lambda place: _batches(place, Inputs("image", (3, 32, 32)))


def _image(suffix: str) -> Callable[[Path], Reader]:
    def make(folder: Path) -> Reader:
        from PIL import Image

        pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3)).astype(np.uint8)
        (folder / "photos").mkdir()
        for name in (f"a{suffix}", "b.png"):
            Image.fromarray(pixels).save(folder / "photos" / name)
        (folder / "photos" / "labels.csv").write_text(f"file,class_index\na{suffix},3\nb.png,1\n", "utf-8")
        return lambda place: _batches(place / "photos", IMAGES)

    return make


def _text(folder: Path) -> Reader:
    (folder / "book.txt").write_text("Call me Ishmael. Some years ago – never mind how long …\n" * 3, "utf-8")
    return lambda place: _batches(place / "book.txt", TOKENS)


def _own_task(folder: Path) -> Reader:
    drawn = np.random.default_rng(0)
    np.savez(folder / "own.npz", x=drawn.random((9, 4)), y=drawn.random((9, 3)))

    def read(place: Path) -> None:
        task = read_own_task(place / "own.npz")
        require(len(task.x) == len(task.y) and task.x.dtype == torch.float64, "a task that does not fit")
        require(bool(task.x.isfinite().all() and task.y.isfinite().all()), "data that are not finite")

    return read


def _weights(suffix: str) -> Callable[[Path], Reader]:
    def make(folder: Path) -> Reader:
        if suffix == ".pt":
            torch.save({"state_dict": network().state_dict(), "epoch": 3}, folder / "w.pt")
        else:
            from safetensors.torch import save_file

            save_file(network().state_dict(), folder / "w.safetensors")

        def read(place: Path) -> None:
            net = network()
            before = {name: value.shape for name, value in net.state_dict().items()}
            load_weights(net, place / f"w{suffix}")
            require({n: v.shape for n, v in net.state_dict().items()} == before, "weights of another shape")

        return read

    return make


def _facts(folder: Path) -> Reader:
    text = "network,family,accuracy,year\nalexnet,AlexNet,56.5,2012\nresnet18,ResNet,69.8,2015\n"
    (folder / "networks.csv").write_text(text, "utf-8")

    def read(place: Path) -> None:
        table = read_facts(place / "networks.csv")
        require(table.index.is_unique, "a network twice")

    return read


RESULTS: tuple[Kind, ...] = (
    Kind("sounding, JSON", "s.json", "json", _sounding(".json"), 2.0),
    Kind("sounding, Parquet", "s.parquet", "bytes", _sounding(".parquet")),
    Kind("history of a training", "h.json", "json", _history),
    Kind("journal of a measurement", "s.journal", "jsonl", _journal, 0.5),
    Kind("plan of a survey", "plan.toml", "toml", _plan, 5.0),
    Kind("sounding in a results folder", f"out/s-{_task().address}.json", "json", _store("")),
    Kind(
        "failure in a results folder", f"out/failed/s-{_task().address}.json", "json", _store("failed"), 2.0
    ),
    Kind("plan of a leaky sweep", "run/sweep.json", "json", _leaky, 2.0),
    Kind("task of a leaky sweep", "run/task-000.safetensors", "safetensors", _leaky),
    Kind("network of a leaky sweep", "run/network-000.safetensors", "safetensors", _leaky),
    Kind("checkpoint of a leaky sweep", "run/checkpoint-000.safetensors", "safetensors", _checkpoint, 0.5),
    Kind("verdict", "verdict.json", "json", _verdict, 3.0),
)
"""Plans, and what fathometer wrote itself."""

INPUTS: tuple[Kind, ...] = (
    Kind("array, .npy", "a.npy", "bytes", _array("a.npy", IMAGES)),
    Kind("arrays, .npz", "a.npz", "bytes", _array("a.npz", IMAGES)),
    Kind("token ids, .npy", "t.npy", "bytes", _array("t.npy", TOKENS)),
    Kind("own task, .npz", "own.npz", "bytes", _own_task),
    Kind("CIFAR-10, binary", "test_batch.bin", "bytes", _cifar),
    Kind("image, PNG", "photos/a.png", "bytes", _image(".png")),
    Kind("image, JPEG", "photos/a.jpg", "bytes", _image(".jpg")),
    Kind("labels.csv", "photos/labels.csv", "bytes", _image(".png")),
    Kind("text", "book.txt", "bytes", _text),
    Kind("weights, torch.save", "w.pt", "bytes", _weights(".pt")),
    Kind("weights, safetensors", "w.safetensors", "safetensors", _weights(".safetensors")),
    Kind("facts of networks, CSV", "networks.csv", "bytes", _facts),
    Kind("network, ONNX", "net.onnx", "bytes", onnx_network),
    Kind("network, GGUF", "net.gguf", "bytes", gguf_network),
    Kind("config.json of transformers", "net/config.json", "json", transformers_network),
    Kind("weights of transformers", "net/model.safetensors", "safetensors", transformers_network),
)
"""Data, networks, weights and tables that others wrote."""

KINDS = (*RESULTS, *INPUTS)
