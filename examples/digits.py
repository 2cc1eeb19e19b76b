"""A plain and a residual network on handwritten digits, sounded before and after training.

    python examples/digits.py --out demo

Two convolutional networks that differ in nothing but `x +` learn scikit-learn's 8×8 digits. `fathometer.measure`
takes the non-linearity signature of each before and after, on images that were held out. The terminal shows them
and says which claims of the paper's Figure 5D (residual connections) and Figure 9 (training) can be seen here.
"""

from __future__ import annotations

import argparse
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from fathometer import Sounding, measure
from fathometer.progress import progress_bar
from fathometer.report.figures import BUOY, INK, SEA, new_figure, save_figure

WIDTH, BLOCKS = 16, 8  # 17 ReLU calls: one after the stem, two in each block
TRAINING_IMAGES, SAMPLES = 1000, 128  # of 1797; the other 797 are 6 batches to measure, and 29 left over
KINDS, TIMES = ("plain", "residual"), ("before", "after")
COLUMNS = [(kind, when) for kind in KINDS for when in TIMES]


class Block(nn.Module):
    """Two convolutions and a ReLU each; the residual one adds its input before the second ReLU."""

    def __init__(self, residual: bool) -> None:
        super().__init__()
        self.residual = residual
        self.conv1, self.conv2 = (nn.Conv2d(WIDTH, WIDTH, 3, padding=1, bias=False) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(WIDTH), nn.BatchNorm2d(WIDTH)
        self.inside, self.end = nn.ReLU(), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """`[n, width, 8, 8]` to the same."""
        y = self.norm2(self.conv2(self.inside(self.norm1(self.conv1(x)))))
        return self.end(x + y if self.residual else y)


def network(kind: str, seed: int) -> nn.Sequential:
    """With the same weights for both kinds, drawn as for torchvision's VGG and ResNet."""
    torch.manual_seed(seed)
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        conv=nn.Conv2d(1, WIDTH, 3, padding=1, bias=False), norm=nn.BatchNorm2d(WIDTH), stem=nn.ReLU()
    )
    layers |= {f"block{i + 1}": Block(kind == "residual") for i in range(BLOCKS)}
    layers |= {"pool": nn.AdaptiveAvgPool2d(1), "flat": nn.Flatten(), "head": nn.Linear(WIDTH, 10)}
    for module in nn.Sequential(layers).modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(layers)


def digits(seed: int) -> tuple[TensorDataset, TensorDataset]:
    """Images for training and held-out ones, another split for each seed."""
    images, labels = load_digits(return_X_y=True)
    x = torch.from_numpy(images).float().reshape(-1, 1, 8, 8) / 16
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    training, held_out = order[:TRAINING_IMAGES], order[TRAINING_IMAGES:]
    y = torch.from_numpy(labels)
    return TensorDataset(x[training], y[training]), TensorDataset(x[held_out], y[held_out])


def train(model: nn.Module, data: TensorDataset, epochs: int, seed: int, tick: Callable[[], None]) -> None:
    """Stochastic gradient descent, one cycle of the learning rate."""
    loader = DataLoader(data, 50, shuffle=True, generator=torch.Generator().manual_seed(seed))
    optimiser = torch.optim.SGD(model.parameters(), momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.1, total_steps=epochs * len(loader))
    model.train()
    for _ in range(epochs):
        for x, y in loader:
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
            schedule.step()
        tick()


@torch.no_grad()
def accuracy(model: nn.Module, data: TensorDataset) -> float:
    """The share of images that are recognised."""
    x, y = data.tensors
    return float((model.eval()(x).argmax(1) == y).double().mean())


class Trial(NamedTuple):
    """One network at one time."""

    sounding: Sounding
    accuracy: float


def voyage(seeds: int, epochs: int) -> dict[tuple[str, str], list[Trial]]:
    """Measure, train, measure again: a trial for each seed in each column."""
    trials: dict[tuple[str, str], list[Trial]] = {column: [] for column in COLUMNS}
    done, total = 0, len(KINDS) * seeds * epochs
    with progress_bar("training and measuring") as show:

        def tick() -> None:
            nonlocal done
            show(done := done + 1, total)

        show(0, total)
        for seed in range(seeds):
            training, held_out = digits(seed)
            loader = DataLoader(held_out, batch_size=SAMPLES)
            for kind in KINDS:
                model = network(kind, seed)
                for when in TIMES:
                    if when == "after":
                        train(model, training, epochs, seed, tick)
                    sounding = measure(  # the whole of it: a network, data, and what to measure
                        model,
                        loader,
                        samples=SAMPLES,
                        gauges=["affinity", "stable_rank", "cost_of_identity"],
                        name=f"{kind} {when} training, seed {seed}",
                    )
                    trials[kind, when].append(Trial(sounding, accuracy(model, held_out)))
    return trials
