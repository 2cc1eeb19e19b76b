"""The paper's architectures, and how each is trained on CIFAR-10: torchvision's code with ten classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import torch
from torch import nn

from fathometer.models import ensure_torchvision_operators
from papers.networks.measure import State

SIZE = 128
"""Pixels a side, to which the 32 of CIFAR-10 are enlarged."""


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes:
        optimiser: SGD with Nesterov momentum of 0.9, or AdamW.
        rate: the highest learning rate of one cycle, which is reached after a fifth of the steps.
        decay: weight decay.
        epochs: passes over the data.
        clip: the largest norm of the gradient; none if left out.
        mixing: α of Beta(α, α), by which images and labels are mixed; 0 for none.
        recalibrate: compute the statistics of BatchNorm again after training. MNASNet's momentum is 0.0003,
            so that its running statistics lag behind the weights.
        search: let cuDNN search for the fastest kernels, which takes long for networks of many shapes.
        batch: images in a step.
        smoothing: of the labels.
    """

    optimiser: Literal["sgd", "adamw"]
    rate: float
    decay: float
    epochs: int
    clip: float | None = None
    mixing: float = 0.0
    recalibrate: bool = False
    search: bool = True
    batch: int = 512
    smoothing: float = 0.1


_SGD = Recipe("sgd", 0.5, 5e-4, 18)
_NO_NORM = Recipe("adamw", 5e-4, 0.05, 24, clip=1.0)
_NO_SEARCH = replace(_SGD, search=False)
_MNASNET = replace(_NO_SEARCH, recalibrate=True)
_LAYER_NORM = Recipe("adamw", 3e-4, 0.05, 50, clip=1.0, mixing=0.2)


class Architecture(NamedTuple):
    """A network of the paper: its family, the year of its publication, and how to train it."""

    family: str
    year: int
    recipe: Recipe


ARCHITECTURES: dict[str, Architecture] = {
    "alexnet": Architecture("AlexNet", 2012, _NO_NORM),
    **{f"vgg{depth}": Architecture("VGG", 2014, _NO_NORM) for depth in (11, 13, 16, 19)},
    "googlenet": Architecture("Inception", 2014, _NO_SEARCH),
    "inception_v3": Architecture("Inception", 2015, _NO_SEARCH),
    **{f"resnet{depth}": Architecture("ResNet", 2015, _SGD) for depth in (18, 34, 50, 101, 152)},
    **{f"densenet{depth}": Architecture("DenseNet", 2016, _SGD) for depth in (121, 161, 169, 201)},
    **{f"mnasnet{width}": Architecture("MNASNet", 2018, _MNASNET) for width in ("0_5", "0_75", "1_0", "1_3")},
    **{f"efficientnet_b{size}": Architecture("EfficientNet", 2019, _NO_SEARCH) for size in (1, 2, 3, 4)},
    **{f"vit_b_{patch}": Architecture("ViT", 2020, _LAYER_NORM) for patch in (16, 32)},
    **{f"swin_{size}": Architecture("Swin", 2021, _LAYER_NORM) for size in ("t", "s", "b")},
    **{f"convnext_{size}": Architecture("ConvNeXt", 2022, _LAYER_NORM) for size in ("tiny", "small", "base")},
}
"""The paper's networks but the largest (ViT-L, ViT-H, ConvNeXt-L), by torchvision's names."""

SEVERAL_SEEDS = (
    *("alexnet", "vgg16", "googlenet", "resnet50", "densenet121", "mnasnet1_0"),
    *("efficientnet_b1", "vit_b_16", "swin_t", "convnext_tiny"),
)
"""One network of each family, trained three times."""

_OPTIONS: dict[str, dict[str, Any]] = {
    "googlenet": {"aux_logits": False, "init_weights": True},
    "inception_v3": {"aux_logits": False, "init_weights": True},
    "vit": {"image_size": SIZE},
}


class Training(NamedTuple):
    """A network to train."""

    architecture: str
    seed: int = 0

    @property
    def state(self) -> State:
        """The kind of folder for its soundings: those of other seeds are apart."""
        return "seeds" if self.seed else "trained"

    @property
    def name(self) -> str:
        """Its name in files."""
        return f"{self.architecture}-seed{self.seed}" if self.seed else self.architecture


def every_training() -> Iterator[Training]:
    """Yield all networks with the first seed, then some of them with two others."""
    yield from (Training(name) for name in ARCHITECTURES)
    yield from (Training(name, seed) for seed in (1, 2) for name in SEVERAL_SEEDS)


def build(architecture: str, seed: int) -> nn.Module:
    """Build a network as torchvision does, for ten classes, with weights that depend on the seed alone."""
    ensure_torchvision_operators()
    from torchvision import models

    options = next((each for name, each in _OPTIONS.items() if architecture.startswith(name)), {})
    torch.manual_seed(seed)
    module: nn.Module = models.get_model(architecture, weights=None, num_classes=10, **options)
    return module
