"""Trained networks and their soundings, each made once and kept."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from fathometer.leaky.tensor_files import read_tensors, write_tensors
from fathometer.measure import measure
from fathometer.progress import progress_bar
from fathometer.reproduce.images.networks import build
from fathometer.reproduce.images.pictures import Split, normalised, pictures, size_of
from fathometer.reproduce.images.training import Method, Recipe, accuracy, train
from fathometer.reproduce.workshop import Workshop
from fathometer.sounding import Sounding
from fathometer.sounding_file import load

State: TypeAlias = Literal["trained", "initial"]
"""`initial`: as it was before its training."""

Data: TypeAlias = "Split | Pixels"


@dataclass(frozen=True)
class Pixels:
    """Images of another kind to measure on: uint8, or float32 as the network takes them."""

    name: str
    tensor: Tensor


@dataclass(frozen=True)
class Trained:
    """A network after its training.

    Attributes:
        kind: its architecture.
        seed: of its weights and of the order of the images.
        method: how it was trained.
        module: itself, in eval mode.
        accuracy: on the test set, per cent.
        seconds: how long the training took.
    """

    kind: str
    seed: int
    method: Method
    module: nn.Module
    accuracy: float
    seconds: float


def samples_of(workshop: Workshop) -> int:
    """In a batch that is measured, where nothing else is asked for."""
    return workshop.pick(smoke=100, small=125, paper=500)


def recipe_of(workshop: Workshop, kind: str, method: Method = "sgd") -> Recipe:
    """How networks of a kind are trained at this scale."""
    rate = 0.05 if kind == "vgg16" else 0.2 if kind.startswith("plain") else 0.4
    return workshop.pick(
        smoke=Recipe(1, 64, rate / 4, flips=False),
        small=Recipe(15, 64, rate / 4, flips=False),
        paper=Recipe(30, 256, rate),
    ).by(method)


def untrained(workshop: Workshop, kind: str, seed: int) -> nn.Module:
    """As it is before training: its original width at scale `paper`, a half or an eighth below."""
    narrow = 1 / 8 if kind == "vgg16" else 1 / 2
    width = workshop.pick(smoke=narrow / 2, small=narrow, paper=1.0)
    return build(kind, seed, width, size_of(workshop))


def trained(workshop: Workshop, kind: str, seed: int = 0, method: Method = "sgd") -> Trained:
    """A network after training: loaded if it is there, else trained and kept."""
    file = workshop.shared / "images" / "networks" / f"{kind}-{method}-{seed}.safetensors"
    network = untrained(workshop, kind, seed)
    if file.exists():
        kept = read_tensors(file, {"accuracy": float, "seconds": float})
        network.load_state_dict(kept.tensors)
        facts = kept.facts
    else:
        facts = _train(workshop, network, kind, seed, method)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_tensors(file, {name: value.cpu() for name, value in network.state_dict().items()}, facts)
    module = network.eval().to(workshop.device)
    return Trained(kind, seed, method, module, facts["accuracy"], facts["seconds"])


def sounding(
    workshop: Workshop,
    kind: str,
    seed: int = 0,
    method: Method = "sgd",
    *,
    state: State = "trained",
    data: Data = "test",
    samples: int | None = None,
    batches: int | None = None,
) -> Sounding:
    """What a network measures: loaded if it is there, else measured and kept.

    Args:
        workshop: where.
        kind: of the network.
        seed: of its training.
        method: of its training.
        state: before or after it.
        data: the test images, the training images, or others.
        samples: in a batch.
        batches: how many; all that the data give if left out.
    """
    count = samples or samples_of(workshop)
    what = data if isinstance(data, str) else data.name
    file = _sounding_file(workshop, f"{kind}-{method}-{seed}-{state}-{what}-{count}-{batches or 'all'}")
    if file.exists():
        return load(file)
    network = (
        trained(workshop, kind, seed, method).module
        if state == "trained"
        else untrained(workshop, kind, seed).eval().to(workshop.device)
    )
    found = measure(
        network,
        _inputs(workshop, data),
        samples=count,
        batches=batches,
        batch_size=500,
        name=f"{kind} {method} {seed}",
        seed=seed,
    )
    found.provenance.model.update({"weights": f"{state}, seed {seed}, {method}"})
    found.provenance.data.update({"name": what})
    file.parent.mkdir(parents=True, exist_ok=True)
    found.save(file)
    return found


def _sounding_file(workshop: Workshop, name: str) -> Path:
    return workshop.shared / "images" / "soundings" / f"{name.replace(' ', '_')}.json"


def _inputs(workshop: Workshop, data: Data) -> Tensor:
    tensor = data.tensor if isinstance(data, Pixels) else pictures(workshop, data).pixels
    tensor = tensor.to(workshop.device)
    return normalised(tensor) if tensor.dtype == torch.uint8 else tensor


def _train(
    workshop: Workshop, network: nn.Module, kind: str, seed: int, method: Method
) -> dict[str, float | str]:
    started = time.perf_counter()
    recipe = recipe_of(workshop, kind, method)
    with progress_bar(f"training {kind}, {method}, seed {seed}") as show:
        train(network, pictures(workshop, "train"), recipe, seed + 1000, workshop.device, show)
    seconds = time.perf_counter() - started
    return {
        "accuracy": accuracy(network, pictures(workshop, "test"), workshop.device),
        "seconds": round(seconds, 2),
    }
