"""Trained networks by name, and the images and texts that they are linearized on."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from pydoc_data import topics
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.records import ROOT
from fathometer.data import open_data
from fathometer.models import LoadedModel, ensure_torchvision_operators, load_model
from papers.images.pictures import Split, cifar10
from papers.networks import cifar10 as cifar10_networks
from papers.networks import imagenet
from papers.networks.network import Network
from papers.networks.recipes import build
from papers.networks.trainer import enlarged

DEVELOPMENT_IMAGES = 1000
"""Test images of CIFAR-10 that `linearize` was developed with; no benchmark uses them."""

ENLARGED = ("densenet121", "vit_b_32")
"""Networks that `python -m papers.networks train` trains on images enlarged to 128 pixels."""

BLOCKS = 32
"""Blocks of text in a pass."""

LANGUAGE_MODELS = {"smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf", "minilm": "model.safetensors"}
"""Files of weights by name."""

EMBEDDINGS = ("clip_vit_b16", "minilm")
"""Networks whose outputs are no logits: they are compared by their squared error."""

TEXTS = {
    "documentation": (ROOT, "docs/**/*.md"),
    "code": (ROOT, "src/fathometer/*/*.py"),
    "python": (Path(topics.__file__).parent, "topics.py"),
}
"""Texts for language models that need no download: of this repository, and Python's own reference."""


def cifar_resnet18() -> nn.Module:
    """Return torchvision's ResNet-18 for images of 32 × 32: a first convolution of 3 × 3, no max pooling."""
    ensure_torchvision_operators()
    from torchvision.models import resnet18

    network: Any = resnet18(num_classes=10)
    network.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    network.maxpool = nn.Identity()
    return network


def _enlarged(name: str) -> Network:
    """Return one of torchvision's networks that `python -m papers.networks train` trains."""
    return replace(
        cifar10_networks.resnet20,
        name=name,
        title=name,
        build=partial(build, name, 0),
        file=f"{name}.pt",
        source=f"python -m papers.networks train {name}",
        accuracy=None,
        notes=("images enlarged to 128 pixels",),
    )


CIFAR: dict[str, Network] = {
    **{name: each for name, each in cifar10_networks.NETWORKS.items() if name.startswith("resnet")},
    "vgg16": cifar10_networks.cifar_vgg16,
    "cifar_resnet18": replace(
        cifar10_networks.resnet20,
        name="cifar_resnet18",
        title="ResNet-18 (CIFAR-10)",
        build=cifar_resnet18,
        file="cifar_resnet18.pth",
        source="python -m benchmarks.train_cifar",
        accuracy=None,
        notes=(),
    ),
    **{name: _enlarged(name) for name in ENLARGED},
}
IMAGENET = {name: each for name, each in imagenet.NETWORKS.items() if name not in ("alexnet", "vgg16")}
NAMES = (*CIFAR, *IMAGENET, *LANGUAGE_MODELS)


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Let a benchmark know where networks and data are, and where to run."""
    parser.add_argument("--weights", nargs="+", required=True, help="folders of weights")
    parser.add_argument("--data", help="folder with cifar10_train.npz and cifar10_test.npz")
    parser.add_argument("--device", default="cpu")


def loaded(options: argparse.Namespace, name: str) -> LoadedModel:
    """Load a network by its name."""
    folders = [Path(folder) for folder in options.weights]
    network = {**CIFAR, **IMAGENET}.get(name)
    pattern = LANGUAGE_MODELS[name] if network is None else network.file
    file = next((path for folder in folders for path in sorted(folder.rglob(pattern))), None)
    if file is None:
        raise SystemExit(f"{pattern} is in none of {', '.join(options.weights)}")
    folder = file.parent if file.name == "model.safetensors" else file
    model = load_model(f"hf:{folder}") if network is None else network.load(file)
    model.module.to(options.device)
    return model


def cifar(
    options: argparse.Namespace, name: str, split: Split, count: int, start: int = 0
) -> list[tuple[Tensor, Tensor]]:
    """Return labelled images of CIFAR-10 on the device, as a network takes them, 500 in a batch."""
    crop = CIFAR[name].crop
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (crop.mean, crop.std))
    found = cifar10(Path(options.data), split)
    x = (found.pixels[start : start + count] / 255 - mean) / std
    if name in ENLARGED:
        x = enlarged(x)
    y = found.labels[start : start + count]
    sides = (side.to(options.device).split(500) for side in (x, y))
    return list(zip(*sides, strict=True))


def blocks(options: argparse.Namespace, model: Any, text: str, count: int) -> list[Any]:
    """Return the first blocks of 128 tokens of a text."""
    folder, pattern = TEXTS[text]
    words = "\n".join(path.read_text("utf-8") for path in sorted(folder.glob(pattern)))
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / f"{text}.txt"
        file.write_text(words, "utf-8")
        data = open_data(str(file), model.inputs, batch_size=BLOCKS, length=128)
        found: Any = list(islice(data, count // BLOCKS))
    return [{name: ids.to(options.device) for name, ids in batch.items()} for batch in found]
