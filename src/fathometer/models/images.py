"""Preprocessing of images where a model brings none, and the shape that a preprocessing gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from fathometer.errors import InputError, MissingExtraError, first_line

if TYPE_CHECKING:
    from PIL.Image import Image

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_PROBES = (256, 320)  # pixels a side


@dataclass(frozen=True)
class ResizeAndNormalise:
    """Turns an RGB image into `[1 or 3, height, width]`, with ImageNet's mean and standard deviation."""

    channels: int
    height: int
    width: int

    def __call__(self, image: Image) -> Tensor:
        """Return the image as a tensor."""
        resized = image.convert("RGB" if self.channels == 3 else "L").resize((self.width, self.height))
        pixels = np.array(resized, dtype=np.float32).reshape(self.height, self.width, self.channels)
        mean, std = (
            torch.tensor(v[: self.channels]).reshape(-1, 1, 1) for v in (IMAGENET_MEAN, IMAGENET_STD)
        )
        return (torch.from_numpy(pixels).permute(2, 0, 1) / 255 - mean) / std


def resize_and_normalise(shape: tuple[int, ...]) -> ResizeAndNormalise | None:
    """Return the usual preprocessing for `[1 or 3, height, width]`, and none for other shapes."""
    return ResizeAndNormalise(*shape) if len(shape) == 3 and shape[0] in (1, 3) else None


def shape_of(preprocess: Callable[[Image], Tensor]) -> tuple[tuple[int, ...], bool]:
    """Return the shape that `preprocess` gives, and whether it is the same for images of another size."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError("pillow", "vision", "an image") from error
    shapes = []
    for side in _PROBES:
        try:
            shapes.append(tuple(preprocess(Image.new("RGB", (side, side), "grey")).shape))
        except Exception as error:  # the user's code
            raise InputError(
                f"preprocess failed on an RGB image of {side} × {side} ({first_line(error)})"
            ) from error
        if len(shapes[-1]) != 3:
            raise InputError(f"expected [channels, height, width] from preprocess, got shape {shapes[-1]}")
    return shapes[0], shapes[0] == shapes[1]
