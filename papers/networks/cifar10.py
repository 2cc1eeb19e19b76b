"""Networks of CIFAR-10 with published weights.

fathometer measure papers.networks.cifar10:resnet20 --weights resnet20-12fca82f.th --data cifar10_test.npz
"""

from __future__ import annotations

from functools import partial

from papers.images.networks import CifarResNet, CifarVGG16
from papers.networks.network import IMAGENET_MEAN, IMAGENET_STD, CentreCrop, Network

_AUTHOR = "github akamaster/pytorch_resnet_cifar10, BSD-2"
_OPTION_A = "shortcuts without weights where the width changes (option A of He et al.)"


def _resnet(depth: int, accuracy: float, source: str = _AUTHOR) -> Network:
    return Network(
        f"resnet{depth}",
        f"ResNet-{depth}",
        "ResNet",
        2015,
        partial(CifarResNet, depth),
        f"resnet{depth}*.th",
        CentreCrop(32, IMAGENET_MEAN, IMAGENET_STD, short_side=32),
        source,
        (accuracy, source.partition(",")[0]),
        (_OPTION_A,),
        "cifar10",
    )


resnet20 = _resnet(20, 91.73)
resnet32 = _resnet(32, 92.63)
resnet44 = _resnet(44, 93.10)
resnet56 = _resnet(56, 93.39)
resnet110 = _resnet(110, 93.78, "PyPI gnnrl 1.0.8, MIT; of the same make as the other ResNets")
cifar_vgg16 = Network(
    "cifar_vgg16",
    "VGG-16 (CIFAR-10)",
    "VGG",
    2014,
    CifarVGG16,
    "vgg16_cifar10.pth",
    CentreCrop(32, short_side=32),
    "PyPI torch-optim 0.0.4, MIT",
    (92.25, "PyPI torch-optim"),
    ("BatchNorm and dropout; pixels from 0 to 1, without mean",),
    "cifar10",
)

NETWORKS: dict[str, Network] = {
    each.name: each for each in (cifar_vgg16, resnet20, resnet32, resnet44, resnet56, resnet110)
}
"""All of them by name."""
