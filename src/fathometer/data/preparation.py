"""How images become inputs, where the user says it: size, crop, mean, deviation, order of channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from fathometer.data.source import Inputs
from fathometer.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class Preparation:
    """Prepares an RGB image: short side to `size`, centre crop, (pixels / 255 − mean) / std, channels first.

    Attributes:
        size: the short side in pixels; None leaves the image as it is.
        crop: side of the square that is cut from the centre; None for the whole image.
        mean: of each channel, or one for all, for pixels from 0 to 1.
        std: of each channel, or one for all.
        bgr: whether channels are in the order blue, green, red; `mean` and `std` are, too, then.

    Example:
        >>> from PIL import Image
        >>> prepare = Preparation(size=16, crop=8, mean=(0.5,), std=(0.25,))
        >>> list(prepare(Image.new("RGB", (64, 32))).shape)
        [3, 8, 8]
    """

    size: int | None = None
    crop: int | None = None
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    bgr: bool = False

    def __post_init__(self) -> None:
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, 3):
                raise InputError(f"expected 1 or 3 numbers, got {len(values)}", parameter=name)
        if min(self.std) <= 0:
            raise InputError(f"expected numbers above 0, got {min(self.std):g}", parameter="std")

    def __call__(self, image: Image) -> Tensor:
        """Return `[3, height, width]`."""
        if self.size is not None:
            ratio = self.size / min(image.size)
            image = image.resize((round(image.width * ratio), round(image.height * ratio)))
        if self.crop is not None:
            if self.crop > min(image.size):
                raise InputError(
                    f"expected at most the short side of the image, {min(image.size)}, got {self.crop}",
                    parameter="crop",
                )
            left, top = (round((side - self.crop) / 2) for side in image.size)
            image = image.crop((left, top, left + self.crop, top + self.crop))
        pixels = torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1).float() / 255
        pixels = pixels.flip(0) if self.bgr else pixels
        return (pixels - _column(self.mean)) / _column(self.std)


def with_preparation(inputs: Inputs, preparation: Preparation) -> Inputs:
    """Return inputs that are prepared in this way, instead of the network's own."""
    if inputs.kind != "image":
        raise InputError(f"expected a network that takes images, got one for {inputs.kind}", parameter="data")
    side = preparation.crop
    shape = inputs.shape if side is None else (inputs.shape[0], side, side)
    return replace(inputs, preprocess=preparation, shape=shape)


def _column(values: Sequence[float]) -> Tensor:
    return torch.tensor(values).reshape(-1, 1, 1)
