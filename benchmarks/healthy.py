"""Healthy trained networks, with data: those with published weights, and small ones that are trained here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from fathometer.data import open_data
from fathometer.models import LoadedModel, ensure_torchvision_operators, load_model, load_weights
from papers.networks import cifar10, imagenet
from papers.networks.network import IMAGENET_MEAN, IMAGENET_STD, Network

ROOT = Path(__file__).resolve().parents[1]
SIDE = 16  # pixels of the images that small networks see
EPOCHS, TRAINING_IMAGES, BATCH = 3, 12_000, 64
SAMPLES = {"cifar10": 128, "imagenet": 128, "small": 256, "text": 256}


@dataclass(frozen=True)
class Places:
    """Where data and weights are, and where small trained networks are kept."""

    weights: tuple[Path, ...]
    imagenet: Path
    cifar10: Path
    minilm: Path
    smollm2: Path
    work: Path


@dataclass(frozen=True)
class Subject:
    """A network with its data.

    Attributes:
        name: unique.
        kind: `imagenet`, `cifar10`, `small` or `text`, which decides how many samples are checked.
        model: the network.
        data: batches (inputs, labels), or of tokens.
        hidden: pattern of the layers that an activation follows directly, after a normalisation at most.
        places: where everything is.
    """

    name: str
    kind: str
    model: nn.Module | LoadedModel
    data: Any
    hidden: str
    places: Places

    @property
    def module(self) -> nn.Module:
        """The network itself."""
        return self.model.module if isinstance(self.model, LoadedModel) else self.model


def subjects(places: Places) -> dict[str, Callable[[], Subject]]:
    """Return all healthy networks by name, to be loaded one by one."""
    found: dict[str, Callable[[], Subject]] = {}
    for networks in (cifar10.NETWORKS, imagenet.NETWORKS):
        for network in networks.values():
            found[f"{network.data}/{network.name}"] = partial(published, network, places)
    for name in SMALL:
        found[f"small/{name}"] = partial(small, name, places)
    found["text/MiniLM"] = partial(language, "MiniLM", f"hf:{places.minilm}", places)
    found["text/SmolLM2"] = partial(language, "SmolLM2", f"hf:{places.smollm2}", places)
    return found


def published(network: Network, places: Places) -> Subject:
    """Load a network with published weights."""
    loaded = network.load(network.weights_file(places.weights))
    images = places.cifar10 / "cifar10_test.npz" if network.data == "cifar10" else places.imagenet
    data = open_data(images, loaded.inputs, batch_size=64 if network.data == "cifar10" else 32)
    count = 512 if network.data == "cifar10" else SAMPLES[network.data]  # all are needed to compare times
    batches: list[Any] = []
    for batch in data:
        batches.append(batch)
        if sum(len(x) for x, *_ in batches) >= count:
            break
    is_vgg = network.name == "cifar_vgg16"
    hidden = r"features\.\d+" if is_vgg else r"layer\d\.\d+\.conv1"
    labelled = Labelled(batches, getattr(data, "labels_are_outputs", False), data)
    return Subject(f"{network.data}/{network.name}", network.data, loaded, labelled, hidden, places)


class Labelled(list[Any]):
    """Batches, with what their source says about labels."""

    def __init__(self, batches: list[Any], labels_are_outputs: bool, source: Any) -> None:
        super().__init__(batches)
        self.labels_are_outputs = labels_are_outputs
        if (classes := getattr(source, "classes", None)) is not None:
            self.classes = classes


def mlp(activation: type[nn.Module], norm: type[nn.Module] | None = None, depth: int = 3) -> nn.Sequential:
    """Make a fully connected network for small colour images."""
    widths = [3 * SIDE**2, 512, *[256] * (depth - 1)]
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), *([norm(after)] if norm else []), activation()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 10))


def cnn(activation: type[nn.Module], norm: bool = False) -> nn.Sequential:
    """Make a small convolutional network."""
    layers: list[nn.Module] = []
    for before, after in ((3, 32), (32, 64), (64, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=1), *([nn.BatchNorm2d(after)] if norm else [])]
        layers += [activation(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(256, 128), activation(), nn.Linear(128, 10))


def vit(depth: int = 4, width: int = 96) -> nn.Module:
    """Make a small vision transformer."""
    ensure_torchvision_operators()
    from timm.models.vision_transformer import VisionTransformer

    return VisionTransformer(SIDE, 4, num_classes=10, embed_dim=width, depth=depth, num_heads=4)


SMALL: dict[str, Callable[[], nn.Module]] = {
    "MLP": partial(mlp, nn.ReLU),
    "MLP, Tanh": partial(mlp, nn.Tanh),
    "MLP, GELU": partial(mlp, nn.GELU),
    "MLP, SiLU": partial(mlp, nn.SiLU),
    "MLP, sigmoid": partial(mlp, nn.Sigmoid),
    "MLP, ELU": partial(mlp, nn.ELU),
    "MLP, BatchNorm": partial(mlp, nn.ReLU, nn.BatchNorm1d),
    "MLP, LayerNorm": partial(mlp, nn.GELU, nn.LayerNorm),
    "MLP, 6 layers": partial(mlp, nn.ReLU, nn.BatchNorm1d, 6),
    "CNN": partial(cnn, nn.ReLU),
    "CNN, Tanh": partial(cnn, nn.Tanh),
    "CNN, LeakyReLU": partial(cnn, nn.LeakyReLU),
    "CNN, GELU": partial(cnn, nn.GELU),
    "CNN, BatchNorm": partial(cnn, nn.ReLU, True),
    "CNN, SiLU and BatchNorm": partial(cnn, nn.SiLU, True),
    "ViT": vit,
    "ViT, 6 layers": partial(vit, 6, 64),
    "ViT, 2 layers": partial(vit, 2, 128),
}
_HIDDEN = {"MLP": r"\d+", "CNN": r"\d+", "ViT": r"blocks\.\d+\.mlp\.fc1"}


def small(name: str, places: Places) -> Subject:
    """Return a small network that was trained here, or train it."""
    file = places.work / "small" / f"{re.sub(r'[^A-Za-z0-9]+', '-', name)}.pth"
    torch.manual_seed(0)
    model = SMALL[name]()
    if file.exists():
        load_weights(model, file)
    else:
        train(model, places)
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.save(model.state_dict(), file)
    images, labels = small_images(places, "test")
    batches = list(zip(images[:256].split(64), labels[:256].split(64), strict=True))
    return Subject(f"small/{name}", "small", model.eval(), batches, _HIDDEN[name[:3]], places)


@cache
def small_images(places: Places, part: str) -> tuple[Tensor, Tensor]:
    """Return CIFAR-10 at a quarter of its pixels, normalised as ImageNet is."""
    arrays = np.load(places.cifar10 / f"cifar10_{part}.npz")
    count = TRAINING_IMAGES if part == "train" else 2000
    images = torch.from_numpy(arrays["x"][:count]).permute(0, 3, 1, 2).float() / 255
    mean, std = (torch.tensor(values).reshape(3, 1, 1) for values in (IMAGENET_MEAN, IMAGENET_STD))
    return (F.avg_pool2d(images, 2) - mean) / std, torch.from_numpy(arrays["y"][:count]).long()


def train(model: nn.Module, places: Places, rate: float = 1e-3, steps: int | None = None) -> None:
    """Train by Adam; the order of the images is always the same."""
    images, labels = small_images(places, "train")
    optimiser = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.05)
    generator = torch.Generator().manual_seed(0)
    model.train()
    done = 0
    for _ in range(EPOCHS):
        for index in torch.randperm(len(images), generator=generator).split(BATCH):
            if done == steps:
                return
            optimiser.zero_grad()
            F.cross_entropy(model(images[index]), labels[index]).backward()
            optimiser.step()
            done += 1


def language(name: str, model: str, places: Places) -> Subject:
    """Load a language model, and the documentation of this project as text."""
    loaded = load_model(model)
    pages = sorted((ROOT / "docs").glob("*.md"))
    text = places.work / "text.txt"
    places.work.mkdir(parents=True, exist_ok=True)
    text.write_text("\n".join(page.read_text("utf-8") for page in pages), "utf-8")
    data = open_data(text, loaded.inputs, batch_size=4, length=64)
    batches = [batch for batch, _ in zip(data, range(2), strict=False)]
    hidden = r"encoder\.layer\.\d+\.intermediate\.dense" if name == "MiniLM" else r".*\.mlp\.gate_proj"
    return Subject(f"text/{name}", "text", loaded, batches, hidden, places)


def hidden_layers(subject: Subject) -> Iterator[tuple[str, nn.Module, nn.Module | None]]:
    """Yield the layers that an activation follows, with the BatchNorm or LayerNorm between, if any."""
    modules = dict(subject.module.named_modules())
    names = list(modules)
    for place, name in enumerate(names):
        module = modules[name]
        if not re.fullmatch(subject.hidden, name) or not isinstance(module, nn.Linear | nn.Conv2d):
            continue
        after = modules[names[place + 1]] if place + 1 < len(names) else None
        is_last = not any(isinstance(modules[n], nn.Linear | nn.Conv2d) for n in names[place + 1 :])
        norm = after if isinstance(after, nn.modules.batchnorm._BatchNorm | nn.LayerNorm) else None
        if not is_last:
            yield name, module, norm
