"""Pickles in the place of every file that is read: none of them is opened as one."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

from fathometer.cli.leaky.own_data import read_own_task
from fathometer.data import open_data
from fathometer.data.inputs import Inputs
from fathometer.leaky import Design, Phase, Recipe, Teacher, load_sweep, sweep
from fathometer.measuring.measure import measure
from fathometer.models.weights import load_weights
from fathometer.results.history_file import load as load_history
from fathometer.results.sounding_file import load
from fathometer.results.store import open_results
from fathometer.survey import read_plan
from papers import read_verdict
from soak.security.trial import Point, Trap, refused

IMAGES = Inputs("image", (3, 8, 8))
TOKENS = Inputs("tokens", (8,), vocabulary=300, tokenize=lambda text: list(text.encode()))


def nothing_is_unpickled(folder: Path) -> Point:
    """Each kind of file, as a pickle or with one in it."""
    point = Point("nothing is unpickled")
    trap = Trap(folder / "mark")
    assert trap.works()
    for name, write, read in _cases(folder):
        place = folder / "case"
        place.mkdir()
        write(place, trap)
        error = refused(lambda read=read, place=place: read(place))  # type: ignore[misc]
        point.note(not trap.mark.exists(), f"{name} was unpickled")
        point.note(not error, f"{name} ended in {error}")
        shutil.rmtree(place)
        if trap.mark.exists():
            trap.mark.rmdir()
    return point


def _cases(
    folder: Path,
) -> list[tuple[str, Callable[[Path, Trap], object], Callable[[Path], object]]]:
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU())
    data = torch.randn(40, 4)
    sweep(
        Design(2.0, 3, 5, teacher=Teacher((4, 2, 4)), samples=12, test_samples=4),
        Recipe((Phase("adam", 4),)),
        threads=1,
        out=folder / "run",
    )

    def plain(name: str) -> Callable[[Path, Trap], object]:
        return lambda place, trap: (place / name).write_bytes(pickle.dumps(trap))

    def saved(name: str, zipped: bool) -> Callable[[Path, Trap], object]:
        def write(place: Path, trap: Trap) -> None:
            wrapped = {"state_dict": {"0.weight": trap}}
            torch.save(wrapped, place / name, _use_new_zipfile_serialization=zipped)

        return write

    def of_run(name: str) -> Callable[[Path, Trap], object]:
        def write(place: Path, trap: Trap) -> None:
            shutil.copytree(folder / "run", place / "run")
            (place / "run" / name).write_bytes(pickle.dumps(trap))

        return write

    def cifar(place: Path, trap: Trap) -> None:
        for name in ("data_batch_1", "test_batch", "batches.meta"):
            (place / name).write_bytes(pickle.dumps(trap))

    def weights(name: str) -> Callable[[Path], object]:
        return lambda place: load_weights(net, place / name)

    def images(name: str) -> Callable[[Path], object]:
        return lambda place: list(open_data(place / name, IMAGES))

    def run(place: Path) -> object:
        return load_sweep(place / "run")

    return [
        ("weights.pt", saved("w.pt", True), weights("w.pt")),
        ("weights.pth, the older format", saved("w.pth", False), weights("w.pth")),
        ("weights.bin, a bare pickle", plain("w.bin"), weights("w.bin")),
        ("weights.safetensors", plain("w.safetensors"), weights("w.safetensors")),
        ("objects in .npy", _objects_npy, images("a.npy")),
        ("objects in .npz", _objects_npz, images("a.npz")),
        ("objects in .npz, for tokens", _objects_npz, lambda p: list(open_data(p / "a.npz", TOKENS))),
        ("objects in an own task", _objects_npz, lambda p: read_own_task(p / "a.npz")),
        ("a pickle called .npy", plain("a.npy"), images("a.npy")),
        ("a pickle called .npz", plain("a.npz"), images("a.npz")),
        ("data.pkl", plain("a.pkl"), images("a.pkl")),
        ("data.pt", saved("a.pt", True), images("a.pt")),
        ("a pickle called .txt", plain("a.txt"), lambda p: list(open_data(p / "a.txt", TOKENS))),
        ("CIFAR in its Python version", cifar, images("")),
        ("a batch of it", cifar, images("data_batch_1")),
        ("a pickle called .bin", plain("a.bin"), images("a.bin")),
        ("a pickle called .png", plain("a.png"), images("")),
        ("sounding.json", plain("s.json"), lambda p: load(p / "s.json")),
        ("sounding.parquet", plain("s.parquet"), lambda p: load(p / "s.parquet")),
        ("an extension type in Parquet", _extension, lambda p: load(p / "s.parquet")),
        ("history.json", plain("h.json"), lambda p: load_history(p / "h.json")),
        ("journal", plain("s.journal"), lambda p: measure(net, data, samples=40, journal=p / "s.journal")),
        ("plan.toml", plain("plan.toml"), lambda p: read_plan(p / "plan.toml")),
        ("results folder", plain("a-0123456789abcdef01234567.json"), _quiet_store),
        ("verdict.json", plain("verdict.json"), lambda p: read_verdict(p / "verdict.json")),
        ("sweep.json", of_run("sweep.json"), run),
        ("task-000.safetensors", of_run("task-000.safetensors"), run),
        ("network-000.safetensors", of_run("network-000.safetensors"), run),
    ]


def _quiet_store(place: Path) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return open_results(place)


def _objects_npy(place: Path, trap: Trap) -> None:
    np.save(place / "a.npy", np.array([trap], dtype=object), allow_pickle=True)


def _objects_npz(place: Path, trap: Trap) -> None:
    content = io.BytesIO()
    np.save(content, np.array([trap], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(place / "a.npz", "w") as archive:
        for name in ("x", "y"):
            archive.writestr(f"{name}.npy", content.getvalue())


def _extension(place: Path, trap: Trap) -> None:
    """As pyarrow before 14.0.1 unpickled it while reading."""
    import pyarrow
    from pyarrow import parquet

    metadata = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": pickle.dumps(trap, 0),
    }
    field = pyarrow.field("site", pyarrow.int64(), metadata=metadata)
    schema = pyarrow.schema([field], metadata={"fathometer.sounding": json.dumps({"schema": "x"})})
    parquet.write_table(pyarrow.table({"site": [0]}, schema=schema), place / "s.parquet")
