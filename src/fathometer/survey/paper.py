"""The plan of the paper that introduced the affinity score: its networks, its data, its batches."""

from __future__ import annotations

import json
from pathlib import Path

_FAMILIES = {
    "AlexNet": ["alexnet"],
    "VGG": ["vgg11", "vgg13", "vgg16", "vgg19"],
    "Inception": ["googlenet", "inception_v3"],
    "ResNet": ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152"],
    "DenseNet": ["densenet121", "densenet161", "densenet169", "densenet201"],
    "MNASNet": ["mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3"],
    "EfficientNet": ["efficientnet_b1", "efficientnet_b2", "efficientnet_b3", "efficientnet_b4"],
    "ViT": ["vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32", "vit_h_14"],
    "Swin": ["swin_t", "swin_s", "swin_b"],
    "ConvNeXt": ["convnext_tiny", "convnext_small", "convnext_base", "convnext_large"],
}
_LARGE = {"ViT": 16, "ConvNeXt": 16}  # inputs in a forward pass

_HEAD = """\
# The survey of "the affinity score" paper (section 4): fathometer survey run {name} --out results
# Accuracy, parameters and GFLOPS of every network come from torchvision's metadata; the depth is counted.

weights = "default"  # of torchvision; downloaded if necessary

[data]
imagenet = {imagenet}  # the validation images, in one folder for each class

[settings]
samples = 512  # in a batch
gauges = ["affinity", "cka", "r2", "sparsity", "entropy", "norm"]

[run]
batch_size = 32  # inputs in a forward pass
workers = 4  # processes that read images
"""


def paper_plan(imagenet: str | Path = "imagenet/val", name: str = "paper.toml") -> str:
    """Return the paper's plan as a TOML text.

    Args:
        imagenet: folder of the validation images, relative to the plan.
        name: name of the file that the text is for.

    Example:
        >>> paper_plan("val").count("[families.")
        10
    """
    parts = [_HEAD.format(name=name, imagenet=json.dumps(str(imagenet), ensure_ascii=False))]
    for family, models in _FAMILIES.items():
        names = ", ".join(f'"torchvision:{model}"' for model in models)
        lines = [f"[families.{family}]", f"models = [{names}]"]
        if family in _LARGE:
            lines.append(f"batch_size = {_LARGE[family]}")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)
