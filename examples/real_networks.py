"""Measures trained networks on real images: accuracy and signature in the same pass.

    python -m examples.real_networks --weights FOLDER --images FOLDER --cifar cifar10_test.npz --out FOLDER

Uses all known weights below FOLDER, saves a sounding for each network and prints a table for the
documentation. `examples/pretrained.py` defines the networks that no library has.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fathometer import Sounding, measure
from fathometer.data import open_data
from fathometer.models import load_model
from fathometer.progress import progress_bar

CIFAR = ("resnet20", "resnet32", "resnet44", "resnet56", "vgg16_cifar10")
NETWORKS = {  # name: (model, pattern of its file)
    **{
        f"ResNet-{depth}": (f"examples.pretrained:resnet{depth}", f"resnet{depth}-*.th")
        for depth in (20, 32, 44, 56)
    },
    "VGG-16 (CIFAR-10)": ("examples.pretrained:vgg16_cifar10", "vgg16_cifar10.pth"),
    "SqueezeNet, compressed": ("examples.pretrained:squeezenet_deep_compression", "squeezenet1_0_deep*.pth"),
    "MobileNet v2": ("torchvision:mobilenet_v2", "mobilenet_v2-*.pth"),
    "EfficientNet-lite0": ("examples.pretrained:efficientnet_lite0", "efficientnet-lite0-*.pth"),
    "ResNet-50 (Keras)": ("examples.pretrained:resnet50_keras", "resnet50_keras.pth"),
}


def main() -> None:
    """Measure every network whose weights are there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--weights", type=Path, nargs="+", required=True, help="folders to search for weights"
    )
    parser.add_argument(
        "--images", type=Path, required=True, help="a folder of ImageNet images with labels.csv"
    )
    parser.add_argument("--cifar", type=Path, required=True, help="the test set of CIFAR-10")
    parser.add_argument("--out", type=Path, default=Path("soundings"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    print("| network | images | accuracy, % | sites | min | median | max | spread | std over batches |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, (model, pattern) in NETWORKS.items():
        files = sorted(found for folder in options.weights for found in folder.rglob(pattern))
        if files:
            on_cifar = model.rpartition(":")[2] in CIFAR
            sounding = sound(name, model, files[0], options.cifar if on_cifar else options.images)
            sounding.save(options.out / f"{model.rpartition(':')[2]}.json")
            print(row(name, sounding), flush=True)


def sound(name: str, model: str, weights: Path, data: Path) -> Sounding:
    """The network's sounding, all gauges, on all images."""
    loaded = load_model(model, weights)
    images = open_data(data, loaded.inputs, batch_size=50)
    with progress_bar(name) as progress:
        return measure(loaded, images, samples=500, progress=progress)


def row(name: str, sounding: Sounding) -> str:
    """A line of the table."""
    numbers, count = sounding.summary(), sounding.provenance.data["samples_measured"]
    percent = 100 * (sounding.accuracy or 0)
    cells = [
        *(name, str(count), f"{percent:.2f}", str(len(sounding.sites))),
        *(f"{numbers[key]:.3f}" for key in ("min", "median", "max", "spread")),
        f"{sounding.std('affinity').median():.4f}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
