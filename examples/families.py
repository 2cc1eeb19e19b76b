"""Soundings of torchvision's networks with random weights, family by family, for `fathometer compare`.

    python -m examples.families --data FOLDER --out FOLDER [--samples 64 --batches 3]
    fathometer compare FOLDER/*.json --families families.csv --out compared

No network is trained: what the signatures tell apart is architecture and initialisation alone. `families.csv`
beside the soundings says which network is of which family. A sounding that is there is not taken again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from fathometer import measure
from fathometer.data import open_data
from fathometer.models import load_model

FAMILIES = {
    "AlexNet": ("alexnet",),
    "SqueezeNet": ("squeezenet1_0", "squeezenet1_1"),
    "MNASNet": ("mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3"),
    "MobileNet": ("mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large"),
    "ShuffleNet": ("shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "shufflenet_v2_x1_5"),
    "RegNet": ("regnet_x_400mf", "regnet_x_800mf", "regnet_x_1_6gf"),
    "Inception": ("googlenet", "inception_v3"),
    "EfficientNet": ("efficientnet_b0", "efficientnet_b1", "efficientnet_b2"),
    "ResNet": ("resnet18", "resnet34", "resnet50", "resnet101"),
    "DenseNet": ("densenet121", "densenet169", "densenet201"),
    "ConvNeXt": ("convnext_tiny", "convnext_small"),
    "Swin": ("swin_t", "swin_s"),
    "ViT": ("vit_b_32", "vit_b_16", "vit_l_32"),
    "VGG": ("vgg11", "vgg13", "vgg16"),
}


def main() -> None:
    """Measure what is not there yet."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="random", help="a folder of images, or random")
    parser.add_argument("--out", type=Path, default=Path("soundings"))
    parser.add_argument("--samples", type=int, default=64, help="in a measured batch")
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="of the weights and of the order of the data")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = ["network,family", *(f"{name},{family}" for family in FAMILIES for name in FAMILIES[family])]
    (options.out / "families.csv").write_text("\n".join(rows) + "\n", "utf-8")
    for name in (name for members in FAMILIES.values() for name in members):
        file = options.out / f"{name}.json"
        if file.exists():
            continue
        torch.manual_seed(options.seed)
        model = load_model(f"torchvision:{name}", "none")
        images = open_data(options.data, model.inputs, batch_size=16, seed=options.seed)
        sounding = measure(
            model, images, samples=options.samples, batches=options.batches, seed=options.seed, batch_size=16
        )
        sounding.save(file)
        print(sounding, f"({sounding.provenance.seconds:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
