"""Trained networks and their soundings, each made once and kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from fathometer.leaky.run_files import read_tensors, write_tensors
from fathometer.measuring.measure import measure
from fathometer.progress import progress_bar
from fathometer.results.provenance import tensor_hash
from fathometer.results.sounding import Sounding
from fathometer.results.sounding_file import load
from papers.images.networks import build
from papers.images.pictures import Split, normalised, pictures, size_of
from papers.images.training import Method, Regimen, Training, accuracy, train
from papers.scales import Scale
from papers.workshop import Workshop

State: TypeAlias = Literal["trained", "initial"]
"""`initial`: as it was before its training."""

Data: TypeAlias = "Split | Pixels"

TOGETHER = 6  # trainings side by side on a GPU


@dataclass(frozen=True)
class Pixels:
    """Images of another kind to measure on: uint8, or float32 as the network takes them."""

    name: str
    tensor: Tensor


class Wanted(NamedTuple):
    """Which training of which network."""

    kind: str
    seed: int = 0
    method: Method = "sgd"

    def __str__(self) -> str:
        return f"{self.kind} {self.method} {self.seed}"


class Trained(NamedTuple):
    """A network after its training.

    Attributes:
        module: itself, in eval mode.
        accuracy: on the test set, per cent.
    """

    module: nn.Module
    accuracy: float


def samples_of(workshop: Workshop) -> int:
    """In a batch that is measured, where nothing else is asked for."""
    return workshop.pick(smoke=250, small=125, paper=500)


def regimen_of(workshop: Workshop, kind: str, method: Method = "sgd") -> Regimen:
    """How networks of a kind are trained at this scale."""
    rate = 0.1 if kind == "vgg16" else 0.3 if kind.startswith("plain") else 0.5
    return workshop.pick(
        smoke=Regimen(1, 64, rate / 8, flips=False),
        small=Regimen(15, 64, rate / 8, flips=False),
        paper=Regimen(24, 512, rate),
    ).by(method)


def width_of(workshop: Workshop, kind: str) -> float:
    """As a share of the original's: all of it at scale `paper`, a half or an eighth at `small`."""
    narrow = 1 / 8 if kind == "vgg16" else 1 / 2
    return workshop.pick(smoke=narrow / 2, small=narrow, paper=1.0)


def untrained(workshop: Workshop, kind: str, seed: int) -> nn.Module:
    """As it is before training."""
    return build(kind, seed, width_of(workshop, kind), size_of(workshop))


def train_all(workshop: Workshop, wanted: Iterable[Wanted]) -> None:
    """Train and keep all that are not there yet; on a GPU several side by side."""
    missing = [each for each in dict.fromkeys(wanted) if not _network_file(workshop, each).exists()]
    size = TOGETHER if workshop.device.startswith("cuda") else 1
    for start in range(0, len(missing), size):
        _train(workshop, missing[start : start + size], f"network {start + 1} of {len(missing)}")


def trained(workshop: Workshop, kind: str, seed: int = 0, method: Method = "sgd") -> Trained:
    """A network after training: loaded if it is there, else trained and kept."""
    each = Wanted(kind, seed, method)
    train_all(workshop, [each])
    kept = read_tensors(_network_file(workshop, each), {"accuracy": float})
    network = untrained(workshop, kind, seed)
    network.load_state_dict(kept.tensors)
    return Trained(network.eval().to(workshop.device), kept.facts["accuracy"])


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
    gauges: str = "standard",
) -> Sounding:
    """The sounding of a network before or after its training; the rest as in `measured`."""

    def network() -> nn.Module:
        if state == "initial":
            return untrained(workshop, kind, seed)
        return trained(workshop, kind, seed, method).module

    each = Wanted(kind, seed, method)
    return measured(
        workshop, each, state, network, data=data, samples=samples, batches=batches, gauges=gauges
    )


def measured(
    workshop: Workshop,
    name: object,
    weights: str,
    network: Callable[[], nn.Module],
    *,
    data: Data = "test",
    samples: int | None = None,
    batches: int | None = None,
    gauges: str = "standard",
) -> Sounding:
    """The sounding of any network on images: loaded if it is there, else measured and kept.

    Args:
        workshop: where.
        name: of the network.
        weights: which it has; with the name it tells the network from all others.
        network: gives it, if need be.
        data: the test images, the training images, or others.
        samples: in a batch.
        batches: how many; all that the data give if left out.
        gauges: which.
    """
    count = samples or samples_of(workshop)
    what = data if isinstance(data, str) else data.name
    parts = [name, weights, what, count, batches or "all", *([gauges] if gauges != "standard" else [])]
    file = _store(workshop) / "soundings" / f"{'-'.join(map(str, parts)).replace(' ', '_')}.json"
    if file.exists():
        return load(file)
    found = measure(
        network().eval().to(workshop.device),
        _inputs(workshop, data),
        samples=count,
        batches=batches,
        gauges=gauges,
        batch_size=500,
        name=str(name),
    )
    found.provenance.model.update({"weights": weights})
    found.provenance.data.update({"name": what})
    file.parent.mkdir(parents=True, exist_ok=True)
    found.save(file)
    return found


def _inputs(workshop: Workshop, data: Data) -> Tensor:
    tensor = data.tensor if isinstance(data, Pixels) else pictures(workshop, data).pixels
    tensor = tensor.to(workshop.device)
    return normalised(tensor) if tensor.dtype == torch.uint8 else tensor


def _network_file(workshop: Workshop, wanted: Wanted) -> Path:
    name = f"{wanted.kind}-{wanted.method}-{wanted.seed}.safetensors"
    return _store(workshop) / "networks" / name


def _store(workshop: Workshop) -> Path:
    """Where networks and soundings of these images and these regimens are kept, and no others."""
    return workshop.shared / "images" / _fingerprint(workshop.scale, workshop.sources.get("cifar10"))


@cache
def _fingerprint(scale: Scale, cifar10: Path | None) -> str:
    """Of the images, and of the regimens of all architectures."""
    of_scale = Workshop(scale, "cpu", Path(), Path(), {} if cifar10 is None else {"cifar10": cifar10})
    regimens = [regimen_of(of_scale, kind) for kind in ("vgg16", "plain20", "resnet20")]
    images = tensor_hash(pictures(of_scale, "test").pixels)
    return hashlib.sha256(f"{regimens} {images}".encode()).hexdigest()[:12]


def _train(workshop: Workshop, wanted: Sequence[Wanted], place: str) -> None:
    data, test = pictures(workshop, "train"), pictures(workshop, "test")
    trainings = [
        Training(
            untrained(workshop, each.kind, each.seed),
            data,
            regimen_of(workshop, each.kind, each.method),
            each.seed + 1000,
            workshop.device,
        )
        for each in wanted
    ]
    with progress_bar(f"training {place}: {', '.join(map(str, wanted))}") as show:
        train(trainings, show)
    for each, training in zip(wanted, trainings, strict=True):
        found = accuracy(training.network, test, workshop.device)
        file = _network_file(workshop, each)
        file.parent.mkdir(parents=True, exist_ok=True)
        tensors = {name: value.cpu() for name, value in training.network.state_dict().items()}
        write_tensors(file, tensors, {"accuracy": found})
