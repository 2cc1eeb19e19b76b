"""Trained networks and their soundings, each made once and kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from fathometer import Sounding, load, measure
from fathometer.progress import progress_bar
from fathometer.results import complete_file
from papers.images.networks import build
from papers.images.pictures import Split, normalised, pictures, size_of
from papers.images.training import Method, TrainingConfig, accuracy, train
from papers.item import RunContext, Scale

State: TypeAlias = Literal["trained", "initial"]
"""`initial`: as it was before its training."""

Data: TypeAlias = "Split | Pixels"

GAUGES = "affinity,cka,r2,r2_heldout,sparsity,entropy,norm"
"""Those of the paper, and R² held out."""


@dataclass(frozen=True)
class Pixels:
    """Other images to measure on: uint8, or float32 as the network takes them."""

    name: str
    tensor: Tensor


class Trained(NamedTuple):
    """A network after its training."""

    module: nn.Module
    accuracy: float  # on the test set, per cent


def samples_of(context: RunContext) -> int:
    """Return the default number of samples in a measured batch."""
    return context.pick(smoke=250, small=125, paper=500)


def training_config(context: RunContext, kind: str, method: Method = "sgd") -> TrainingConfig:
    """Return how networks of a kind are trained at this scale."""
    rate = 0.1 if kind == "vgg16" else 0.3 if kind.startswith("plain") else 0.5
    return context.pick(
        smoke=TrainingConfig(1, 64, rate / 8, flips=False),
        small=TrainingConfig(15, 64, rate / 8, flips=False),
        paper=TrainingConfig(24, 512, rate),
    ).by(method)


def width_of(context: RunContext, kind: str) -> float:
    """Return the share of the original width: 1 at scale `paper`, a half or an eighth at `small`."""
    narrow = 1 / 8 if kind == "vgg16" else 1 / 2
    return context.pick(smoke=narrow / 2, small=narrow, paper=1.0)


def untrained(context: RunContext, kind: str, seed: int) -> nn.Module:
    """Build a network as it is before training."""
    return build(kind, seed, width_of(context, kind), size_of(context))


def trained(context: RunContext, kind: str, seed: int = 0, method: Method = "sgd") -> Trained:
    """Load a trained network, or train it first."""
    file, network = _network_file(context, kind, seed, method), untrained(context, kind, seed)
    if not file.exists():
        config = training_config(context, kind, method)
        with progress_bar(f"training {kind} {method} {seed}") as show:
            train(network, pictures(context, "train"), config, seed + 1000, context.device, show)
        found = accuracy(network, pictures(context, "test"), context.device)
        file.parent.mkdir(parents=True, exist_ok=True)
        with complete_file(file) as part:
            torch.save({"weights": network.state_dict(), "accuracy": found}, part)
    kept = torch.load(file, map_location=context.device, weights_only=True)
    network.load_state_dict(kept["weights"])
    return Trained(network.eval().to(context.device), kept["accuracy"])


def sounding(
    context: RunContext,
    kind: str,
    seed: int = 0,
    method: Method = "sgd",
    *,
    state: State = "trained",
    data: Data = "test",
    samples: int | None = None,
    batches: int | None = None,
    gauges: str = GAUGES,
) -> Sounding:
    """Measure a network before or after its training; the rest as in `measured`."""

    def network() -> nn.Module:
        if state == "initial":
            return untrained(context, kind, seed)
        return trained(context, kind, seed, method).module

    name = f"{kind} {method} {seed}"
    return measured(context, name, state, network, data=data, samples=samples, batches=batches, gauges=gauges)


def measured(
    context: RunContext,
    name: str,
    weights: str,
    network: Callable[[], nn.Module],
    *,
    data: Data = "test",
    samples: int | None = None,
    batches: int | None = None,
    gauges: str = GAUGES,
) -> Sounding:
    """Load the sounding of a network on images, or measure it first.

    Name and `weights` tell the network from all others. `batches` are all that the data give if left out.
    """
    count = samples or samples_of(context)
    what = data if isinstance(data, str) else data.name
    parts = [name, weights, what, count, batches or "all", *([gauges] if gauges != GAUGES else [])]
    file = _store(context) / "soundings" / f"{'-'.join(map(str, parts)).replace(' ', '_')}.json"
    if file.exists():
        return load(file)
    found = measure(
        network().eval().to(context.device),
        _inputs(context, data),
        samples=count,
        batches=batches,
        gauges=gauges,
        batch_size=500,
        name=name,
    )
    found.provenance.model.update({"weights": weights})
    found.provenance.data.update({"name": what})
    file.parent.mkdir(parents=True, exist_ok=True)
    found.save(file)
    return found


def _inputs(context: RunContext, data: Data) -> Tensor:
    tensor = data.tensor if isinstance(data, Pixels) else pictures(context, data).pixels
    tensor = tensor.to(context.device)
    return normalised(tensor) if tensor.dtype == torch.uint8 else tensor


def _network_file(context: RunContext, kind: str, seed: int, method: Method) -> Path:
    return _store(context) / "networks" / f"{kind}-{method}-{seed}.pt"


def _store(context: RunContext) -> Path:
    """Return the folder for networks and soundings of these images and these configurations."""
    return context.shared / "images" / _fingerprint(context.scale, context.sources.get("cifar10"))


@cache
def _fingerprint(scale: Scale, cifar10: Path | None) -> str:
    """Hash the images and the configurations of all architectures."""
    of_scale = RunContext(scale, "cpu", Path(), Path(), {} if cifar10 is None else {"cifar10": cifar10})
    configs = [training_config(of_scale, kind) for kind in ("vgg16", "plain20", "resnet20")]
    pixels = pictures(of_scale, "test").pixels.contiguous()
    images = hashlib.sha256(f" {pixels.dtype} {list(pixels.shape)}\n".encode())
    images.update(pixels.numpy().data)
    return hashlib.sha256(f"{configs} {images.hexdigest()}".encode()).hexdigest()[:12]
