"""A network that has learnt coloured digits in a second, and its data."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn


@cache
def _data() -> tuple[Tensor, Tensor]:
    images, labels = load_digits(return_X_y=True)
    grey = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    colours = torch.cat([grey, 0.4 * grey.flip(-1), 1 - 0.7 * grey.flip(-2)], dim=1)
    order = torch.randperm(len(colours), generator=torch.Generator().manual_seed(0))
    return colours[order], torch.tensor(labels)[order]


def digits(count: int = 512) -> list[tuple[Tensor, Tensor]]:
    """Return batches of images from 0 to 1 that the network has not seen, with labels."""
    images, labels = _data()
    return list(zip(images[-count:].split(128), labels[-count:].split(128), strict=True))


def network(activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Make the network, with random weights."""
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), activation()),
        *(nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), activation(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(512, 64), activation(), nn.Linear(64, 10)),
    )


@cache
def _trained(activation: Any) -> nn.Sequential:
    net = network(activation)
    images, labels = (part[:-512] for part in _data())
    optimiser = torch.optim.AdamW(net.parameters(), 3e-3, weight_decay=0.1)
    for _ in range(6):
        for x, y in zip(images.split(64), labels.split(64), strict=True):
            optimiser.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimiser.step()
    return net.eval()


def trained(activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Return a copy of the trained network."""
    return deepcopy(_trained(activation))  # type: ignore[arg-type]
