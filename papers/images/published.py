"""ResNets for CIFAR-10 that others have trained: the files of github akamaster/pytorch_resnet_cifar10."""

from __future__ import annotations

import re
from pathlib import Path

from fathometer.models import load_weights
from papers.images.networks import CifarResNet
from papers.item import RunContext


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
