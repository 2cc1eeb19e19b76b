"""Turns images into samples: by the network's own preprocessing, or scaled to [0, 1].

Arrays of pixels are `[height, width]` or `[height, width, channels]`; results `[channels, height, width]`.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from fathometer.data.inputs import Inputs
from fathometer.data.source import Sample, Unreadable, in_one_line
from fathometer.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = npt.NDArray[np.uint8]


def require_images(inputs: Inputs, path: Path) -> None:
    """Refuse images for a network that takes none, and report early that Pillow is missing."""
    if inputs.kind == "tokens":
        raise InputError(
            f"{path}: read as images, but this network takes tokens; expected a text file, "
            "an .npz or .npy file of token ids, or random"
        )
    if len(inputs.shape) != 3 and not inputs.flattens:
        raise InputError(
            f"{path}: read as images, but this network takes tensors of shape {list(inputs.shape)}; "
            "expected an .npz or .npy file of floats, or random"
        )
    try:
        import PIL  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("pillow", "vision", "reading images") from error


def from_file(path: Path, name: str, label: int | None, inputs: Inputs) -> Sample | Unreadable:
    """Read an image file."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata, large images
            with Image.open(path) as image:
                decoded = _with_8_bits(image)
    except Exception as error:  # decoders raise nearly anything on broken files
        empty = path.is_file() and path.stat().st_size == 0
        return Unreadable(name, "empty file" if empty else in_one_line(error))
    return _from_image(decoded, name, label, inputs)


def from_pixels(pixels: Pixels, name: str, label: int | None, inputs: Inputs) -> Sample | Unreadable:
    """Turn an array of bytes into a sample: grey, RGB or RGBA."""
    from PIL import Image

    pixels = pixels[..., 0] if pixels.ndim == 3 and pixels.shape[-1] == 1 else pixels
    return _from_image(Image.fromarray(np.ascontiguousarray(pixels)), name, label, inputs)


def _from_image(image: Image, name: str, label: int | None, inputs: Inputs) -> Sample | Unreadable:
    if inputs.preprocess is not None:
        try:
            return Sample(name, inputs.preprocess(_in_mode(image, "RGB")), label)
        except Exception as error:  # the user's function
            return Unreadable(name, f"preprocess: {in_one_line(error)}")
    grey = inputs.shape == (math.prod(image.size),) if inputs.flattens else inputs.shape[0] == 1
    pixels = np.array(_in_mode(image, "L" if grey else "RGB"), np.float32) / 255
    values = torch.from_numpy(pixels.reshape(*pixels.shape[:2], -1))
    return Sample(name, values.permute(2, 0, 1).contiguous(), label)


def _with_8_bits(image: Image) -> Image:
    """Decode an image to 8 bits a channel; Pillow alone would clip 16-bit greys to white."""
    from PIL import Image

    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        return Image.fromarray((np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8))
    return image.convert("L" if image.mode in ("1", "L") else "RGB")


def _in_mode(image: Image, mode: str) -> Image:
    return image if image.mode == mode else image.convert(mode)
