"""From an RGB image to a tensor, where nobody has said how."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from fathometer.errors import InputError, MissingExtraError, first_line

if TYPE_CHECKING:
    from PIL.Image import Image

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


def resize_and_normalise(shape: tuple[int, ...]) -> Callable[[Image], Tensor] | None:
    """To `[1 or 3, height, width]` with ImageNet's mean and standard deviation; none for other shapes."""
    if len(shape) != 3 or shape[0] not in (1, 3):
        return None
    channels, height, width = shape
    mean = torch.tensor(IMAGENET_MEAN[:channels]).reshape(-1, 1, 1)
    std = torch.tensor(IMAGENET_STD[:channels]).reshape(-1, 1, 1)

    def preprocess(image: Image) -> Tensor:
        resized = image.convert("RGB" if channels == 3 else "L").resize((width, height))
        pixels = np.array(resized, dtype=np.float32).reshape(height, width, channels)
        return (torch.from_numpy(pixels).permute(2, 0, 1) / 255 - mean) / std

    return preprocess


def shape_of(preprocess: Callable[[Image], Tensor]) -> tuple[int, ...]:
    """What comes out of `preprocess`, found by a grey image."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError("pillow", "vision", "an image") from error
    try:
        sample = preprocess(Image.new("RGB", (256, 256), "grey"))
        shape = tuple(sample.shape)
    except Exception as error:  # the code of others
        raise InputError(f"preprocess failed on an RGB image of 256 × 256 ({first_line(error)})") from error
    if len(shape) != 3:
        raise InputError(f"expected [channels, height, width] from preprocess, got the shape {shape}")
    return shape
