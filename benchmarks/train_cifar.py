"""Train a ResNet-18 for 32 × 32 images on CIFAR-10, in bfloat16: the network whose ReLUs others have counted.

    python -m benchmarks.train_cifar --data FOLDER --out FOLDER
    python -m benchmarks.recovery cifar_resnet18 --budget "100k elements" --weights FOLDER --data FOLDER

It is torchvision's ResNet-18 with a first convolution of 3 × 3 and stride 1, and without max pooling, which
has 557,056 ReLU elements for each image. Ten epochs take about 45 minutes on two cores.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import OneCycleLR

from benchmarks.augmentation import Augmented
from benchmarks.networks import cifar, cifar_resnet18
from fathometer.progress import progress_bar


def train(network: nn.Module, data: Augmented, epochs: int, rate: float) -> nn.Module:
    """Train a network in place by SGD with Nesterov momentum and one cycle of the learning rate."""
    network.train()
    optimizer = torch.optim.SGD(network.parameters(), rate, momentum=0.9, weight_decay=5e-4, nesterov=True)
    total = epochs * len(data)
    cycle = OneCycleLR(optimizer, rate, total, pct_start=0.2, cycle_momentum=False)
    with progress_bar("training") as show:
        for step, (x, y) in enumerate((batch for _ in range(epochs) for batch in data), 1):
            with torch.autocast("cpu", torch.bfloat16):
                logits = network(x.contiguous(memory_format=torch.channels_last))
            loss = cross_entropy(logits.float(), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            cycle.step()
            show(step, total, f"loss {loss.item():.2f}")
    return network.eval()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="folder with cifar10_train.npz")
    parser.add_argument("--out", required=True, help="folder for cifar_resnet18.pth")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rate", type=float, default=0.2, help="the highest learning rate")
    options = parser.parse_args()
    torch.manual_seed(0)
    network: Any = cifar_resnet18()
    network.to(memory_format=torch.channels_last)
    images = cifar("cifar_resnet18", Path(options.data) / "cifar10_train.npz", 50_000)
    train(network, Augmented(images, 0), options.epochs, options.rate)
    torch.save(network.state_dict(), Path(options.out) / "cifar_resnet18.pth")


if __name__ == "__main__":
    main()
