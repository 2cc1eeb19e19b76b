"""Layers and networks that neither torchvision nor timm has under the names of published weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


class SameConv2d(nn.Conv2d):
    """A convolution with TensorFlow's `SAME` padding: where it is odd, more of it on the right and below."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """Pad, then convolve."""
        sizes = zip(input.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1], strict=True)
        missing = [max((-(-n // stride) - 1) * stride + kernel - n, 0) for n, kernel, stride in sizes]
        return super().forward(F.pad(input, [side for m in missing for side in (m // 2, m - m // 2)]))


def with_tensorflow_padding(network: nn.Module) -> nn.Module:
    """Give every padded convolution TensorFlow's padding; the weights and their names stay."""
    for layer in network.modules():
        if type(layer) is nn.Conv2d and layer.padding != (0, 0):
            layer.__class__, layer.padding = SameConv2d, (0, 0)
    return network


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


class _Stage(NamedTuple):
    repeats: int
    channels: int
    widen: int
    kernel: int
    stride: int


_STAGES = (
    _Stage(1, 16, 1, 3, 1),
    _Stage(2, 24, 6, 3, 2),
    _Stage(2, 40, 6, 5, 2),
    _Stage(3, 80, 6, 3, 2),
    _Stage(3, 112, 6, 5, 1),
    _Stage(4, 192, 6, 5, 2),
    _Stage(1, 320, 6, 3, 1),
)


class EfficientNetLite(nn.Module):
    """EfficientNet with ReLU6 and without squeeze-and-excitation; its first and last stage never grow.

    Args:
        width: factor of the channels of all stages.
        depth: factor of the number of blocks of all stages but the first and the last.
    """

    def __init__(self, width: float = 1.0, depth: float = 1.0) -> None:
        super().__init__()
        self._conv_stem = SameConv2d(3, 32, 3, 2, bias=False)
        self._bn0 = nn.BatchNorm2d(32, eps=1e-3)
        self._relu0 = nn.ReLU6()
        self._blocks = nn.Sequential(*self._all_blocks(width, depth))
        self._conv_head = SameConv2d(_rounded(320 * width), 1280, 1, bias=False)
        self._bn1 = nn.BatchNorm2d(1280, eps=1e-3)
        self._relu1 = nn.ReLU6()
        self._fc = nn.Linear(1280, 1000)

    @staticmethod
    def _all_blocks(width: float, depth: float) -> Iterator[LiteBlock]:
        before = 32
        for place, stage in enumerate(_STAGES):
            grows = 0 < place < len(_STAGES) - 1
            after = _rounded(stage.channels * width)
            for repeat in range(-int(-stage.repeats * depth // 1) if grows else stage.repeats):
                yield LiteBlock(before, after, stage.widen, stage.kernel, 1 if repeat else stage.stride)
                before = after

    def forward(self, x: Tensor) -> Tensor:
        """`[n, 3, size, size]` to `[n, 1000]`."""
        x = self._blocks(self._relu0(self._bn0(self._conv_stem(x))))
        return self._fc(self._relu1(self._bn1(self._conv_head(x))).mean((2, 3)))


def _rounded(channels: float) -> int:
    """Round to a multiple of 8, and not down by more than a tenth.

    Example:
        >>> _rounded(24 * 1.1), _rounded(16 * 1.1), _rounded(320)
        (24, 16, 320)
    """
    found = max(8, int(channels + 4) // 8 * 8)
    return found + 8 if found < 0.9 * channels else found
