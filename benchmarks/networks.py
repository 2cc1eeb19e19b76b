"""Trained networks by name, and the images and texts that they are linearized on."""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from torch import Tensor, nn

from benchmarks.records import ROOT
from fathometer.data import open_data
from fathometer.models import LoadedModel, ensure_torchvision_operators, load_model
from papers.networks import cifar10, imagenet
from papers.networks.network import Network

LANGUAGE_MODELS = {"smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf"}
"""Files of weights by name."""

TEXTS = {
    "documentation": (ROOT, "docs/*.md"),
    "code": (ROOT, "src/fathometer/capture/*.py"),
    "datasets": (Path(sklearn.__file__).parent, "datasets/descr/*.rst"),
}
"""Texts for language models that need no download: of this repository, and scikit-learn's about data sets."""


def cifar_resnet18() -> nn.Module:
    """Return torchvision's ResNet-18 for images of 32 × 32: a first convolution of 3 × 3, no max pooling."""
    ensure_torchvision_operators()
    from torchvision.models import resnet18

    network: Any = resnet18(num_classes=10)
    network.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    network.maxpool = nn.Identity()
    return network


CIFAR: dict[str, Network] = {
    **{name: each for name, each in cifar10.NETWORKS.items() if name.startswith("resnet")},
    "vgg16": cifar10.cifar_vgg16,
    "cifar_resnet18": replace(
        cifar10.resnet20,
        name="cifar_resnet18",
        title="ResNet-18 (CIFAR-10)",
        build=cifar_resnet18,
        file="cifar_resnet18.pth",
        source="python -m benchmarks.train_cifar",
        accuracy=None,
        notes=(),
    ),
}
IMAGENET = {name: each for name, each in imagenet.NETWORKS.items() if name not in ("alexnet", "vgg16")}
NAMES = (*CIFAR, *IMAGENET, *LANGUAGE_MODELS)


def loaded(options: argparse.Namespace, name: str) -> LoadedModel:
    """Load a network by its name."""
    folders = [Path(folder) for folder in options.weights]
    network = {**CIFAR, **IMAGENET}.get(name)
    pattern = LANGUAGE_MODELS[name] if network is None else network.file
    file = next((path for folder in folders for path in sorted(folder.rglob(pattern))), None)
    if file is None:
        raise SystemExit(f"{pattern} is in none of {', '.join(options.weights)}")
    return load_model(f"hf:{file}") if network is None else network.load(file)


def cifar(name: str, path: Path, count: int, part: int = 0, skip: int = 0) -> list[tuple[Tensor, Tensor]]:
    """Return a part of the images of CIFAR-10 with their labels, as the network takes them."""
    images = slice(skip + part * count, skip + (part + 1) * count)
    with np.load(path) as file:
        x = torch.from_numpy(file["x"][images]).movedim(-1, 1) / 255
        y = torch.from_numpy(file["y"][images]).long()
    crop = CIFAR[name].crop
    x = (x - torch.tensor(crop.mean).view(3, 1, 1)) / torch.tensor(crop.std).view(3, 1, 1)
    return list(zip(x.split(128), y.split(128), strict=True))


def blocks(model: Any, text: str, options: argparse.Namespace) -> list[Any]:
    """Cut a text into blocks of 128 tokens, 8 in a batch."""
    file = Path(text)
    if text in TEXTS:
        file = Path(options.scratch) / f"{text}.txt"
        folder, pattern = TEXTS[text]
        words = "\n".join(path.read_text("utf-8") for path in sorted(folder.glob(pattern)))
        file.write_text(words, "utf-8")
    return list(islice(open_data(str(file), model.inputs, batch_size=8, length=128), 64))
