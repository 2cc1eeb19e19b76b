"""Train a ResNet-18 for 32 × 32 images on CIFAR-10: the network whose ReLUs others have counted.

    python -m benchmarks.train_cifar --data FOLDER --out FOLDER --device cuda
    python -m benchmarks.recovery cifar_resnet18 --budget "100k elements" --weights FOLDER --data FOLDER

It is torchvision's ResNet-18 with a first convolution of 3 × 3 and stride 1, and without max pooling, which
has 557,056 ReLU elements for each image.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from benchmarks.networks import cifar_resnet18
from fathometer.progress import progress_bar
from papers.images.pictures import cifar10
from papers.images.training import TrainingConfig, accuracy, train


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of cifar10_train.npz and _test.npz")
    parser.add_argument("--out", type=Path, required=True, help="folder for cifar_resnet18.pth")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.manual_seed(0)
    network, config = cifar_resnet18(), TrainingConfig(epochs=options.epochs)
    with progress_bar("training") as show:
        train(network, cifar10(options.data, "train"), config, 0, options.device, show)
    weights = {name: value.half().cpu() for name, value in network.state_dict().items()}
    torch.save(weights, options.out / "cifar_resnet18.pth")
    print(
        f"accuracy on the test images: {accuracy(network, cifar10(options.data, 'test'), options.device)} %"
    )


if __name__ == "__main__":
    main()
