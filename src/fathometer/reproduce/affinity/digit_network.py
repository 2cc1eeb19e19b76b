"""A small convolutional network that knows digits: real activations without a download."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from fathometer.reproduce.images.pictures import digits


class Convolutions(NamedTuple):
    """A network that was trained on digits, and held-out digits to measure it on."""

    network: nn.Module
    images: Tensor
    accuracy: float


def trained_convolutions(seed: int, epochs: int) -> Convolutions:
    """Three stages of two convolutions, 16, 32 and 64 channels on 16², 8² and 4² positions."""
    training, held_out = digits("train"), digits("test")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        before = 3
        for channels in (16, 16, 32, 32, 64, 64):
            if channels > before and layers:
                layers.append(nn.MaxPool2d(2))
            layers += [nn.Conv2d(before, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU()]
            before = channels
        network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))
        optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
        x, y = training.normalised(), training.labels
        for _ in range(epochs):
            for chosen in torch.randperm(len(x)).split(64):
                optimiser.zero_grad()
                nn.functional.cross_entropy(network(x[chosen]), y[chosen]).backward()
                optimiser.step()
    network.eval()
    images = held_out.normalised()
    with torch.no_grad():
        right = (network(images).argmax(1) == held_out.labels).double().mean()
    return Convolutions(network, images, float(right))
