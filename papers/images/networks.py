"""Networks for 32 × 32 images: ResNets with and without their shortcuts, and VGG-16.

Published ResNets are those of github akamaster/pytorch_resnet_cifar10.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from fathometer.errors import InputError
from fathometer.models import load_weights
from papers.item import RunContext


class OptionAShortcut(nn.Module):
    """Every other pixel, with channels of zeros on both sides: He et al.'s shortcut without weights."""

    def __init__(self, planes: int) -> None:
        super().__init__()
        self.padding = planes // 4

    def forward(self, x: Tensor) -> Tensor:
        """`[n, c, h, w]` to `[n, 2c, h/2, w/2]`."""
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.padding, self.padding))


class CifarBlock(nn.Module):
    """Two convolutions, and a shortcut if it is residual."""

    def __init__(self, before: int, planes: int, residual: bool = True) -> None:
        super().__init__()
        stride = 1 if before == planes else 2
        self.residual = residual
        self.conv1 = nn.Conv2d(before, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Identity() if stride == 1 else OptionAShortcut(planes)

    def forward(self, x: Tensor) -> Tensor:
        """A ReLU inside, and one at the end."""
        inner = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(inner + self.shortcut(x) if self.residual else inner)


class CifarResNet(nn.Module):
    """He et al. (2015), section 4.2: 6n + 2 layers, as in github akamaster/pytorch_resnet_cifar10.

    Args:
        depth: 20, 32, 44, 56, 110 or another 6n + 2.
        width: channels of the first stage; those of the others are two and four times as many.
        residual: without, it is their plain network.
    """

    def __init__(self, depth: int, width: int = 16, residual: bool = True) -> None:
        super().__init__()
        if depth < 8 or (depth - 2) % 6:
            raise InputError(f"depth: expected 6n + 2, from 8 on, got {depth}")
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        blocks = (depth - 2) // 6
        self.layer1 = self._stage([width, *[width] * blocks], residual)
        self.layer2 = self._stage([width, *[2 * width] * blocks], residual)
        self.layer3 = self._stage([2 * width, *[4 * width] * blocks], residual)
        self.linear = nn.Linear(4 * width, 10)

    @staticmethod
    def _stage(widths: list[int], residual: bool) -> nn.Sequential:
        return nn.Sequential(*(CifarBlock(before, planes, residual) for before, planes in pairwise(widths)))

    def forward(self, x: Tensor) -> Tensor:
        """`[n, 3, 32, 32]` to `[n, 10]`."""
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))


class CifarVGG16(nn.Module):
    """VGG-16 with batch normalisation and dropout (PyPI torch-optim 0.0.4).

    Args:
        width: channels of the first two convolutions, 64 in the original; the others follow.
        size: of the images; for 16 pixels the last pooling is left out.
        dropout: False leaves it out, which narrow networks cannot bear.
    """

    def __init__(self, width: int = 64, size: int = 32, dropout: bool = True) -> None:
        super().__init__()
        share = float(dropout)
        self.features = nn.Sequential(*self._features(width, size, share))
        self.classifier = nn.Sequential(
            nn.Dropout(0.5 * share),
            nn.Linear(8 * width, 8 * width),
            nn.BatchNorm1d(8 * width),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5 * share),
            nn.Linear(8 * width, 10),
        )

    @staticmethod
    def _features(width: int, size: int, share: float) -> Iterator[nn.Module]:
        before = 3
        for factor, repeats in ((1, 2), (2, 2), (4, 3), (8, 3), (8, 3)):
            for repeat in range(repeats):
                yield nn.Conv2d(before, factor * width, 3, padding=1)
                yield nn.BatchNorm2d(factor * width)
                yield nn.ReLU(inplace=True)
                if repeat < repeats - 1:
                    yield nn.Dropout(share * (0.3 if factor == 1 else 0.4))
                before = factor * width
            yield nn.MaxPool2d(2) if size > 1 else nn.Identity()
            size //= 2

    def forward(self, x: Tensor) -> Tensor:
        """`[n, 3, size, size]` to `[n, 10]`."""
        return self.classifier(self.features(x).flatten(1))


def build(kind: str, seed: int, width: float = 1.0, size: int = 32) -> nn.Module:
    """A network with He et al.'s random weights, which depend on the seed alone.

    Args:
        kind: `vgg16`, `resnet20` or of another depth, `plain20` the same without shortcuts.
        seed: of the weights.
        width: as a share of the original's; a narrower VGG-16 has no dropout.
        size: of the images, 32 or 16.

    Example:
        >>> sum(p.numel() for p in build("resnet20", 0).parameters())
        269722
    """
    match = re.fullmatch(r"(resnet|plain)(\d+)", kind)
    if match is None and kind != "vgg16":
        raise InputError(f"kind: expected vgg16, resnet20, plain20 or the like, got {kind!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if match is None:
            network: nn.Module = CifarVGG16(round(64 * width), size, dropout=width == 1)
        else:
            network = CifarResNet(int(match[2]), round(16 * width), match[1] == "resnet")
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(layer.weight)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
    return network


def published_files(context: RunContext) -> dict[int, Path]:
    """Find the files `resnet20-….th` in `--resnets`, by depth; the first of each."""
    found: dict[int, Path] = {}
    for file in sorted(context.source("resnets").glob("resnet*")):
        if (match := re.match(r"resnet(\d+)\D", file.name)) and file.is_file():
            found.setdefault(int(match[1]), file)
    return dict(sorted(found.items()))


def published_network(depth: int, file: Path) -> CifarResNet:
    """Build a network with the weights of its file."""
    module = CifarResNet(depth)
    load_weights(module, file)
    return module
