"""From a Pillow image to what the network takes: its own preprocessing, or floats in [0, 1].

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
from torch import Tensor

from fathometer.data.inputs import Inputs
from fathometer.data.samples import Sample, Unreadable, brief
from fathometer.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = npt.NDArray[np.uint8]


def require_pictures(inputs: Inputs, source: str) -> None:
    """Refuse images for a network that takes none, and say early that Pillow is missing."""
    if inputs.kind == "tokens":
        raise InputError(
            f"{source}: read as images, but this network takes tokens; expected a text file, "
            "an .npz or .npy file of token ids, or random"
        )
    if len(inputs.shape) != 3 and not inputs.flattens:
        raise InputError(
            f"{source}: read as images, but this network takes tensors of shape {list(inputs.shape)}; "
            "expected an .npz or .npy file of floats, or random"
        )
    try:
        import PIL  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("pillow", "vision", "reading images") from error


def from_file(path: Path, name: str, label: int | None, inputs: Inputs) -> Sample | Unreadable:
    """The image in a file, or why there is none."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata, large images: read or not read, that is all
            with Image.open(path) as image:
                picture = _plain(image)
    except Exception as error:  # decoders raise nearly anything on broken files
        return Unreadable(name, "empty file" if _is_empty(path) else brief(error))
    return from_image(picture, name, label, inputs)


def from_pixels(pixels: Pixels, name: str, label: int | None, inputs: Inputs) -> Sample | Unreadable:
    """The image that an array of bytes holds: grey, RGB or RGBA."""
    from PIL import Image

    pixels = pixels[..., 0] if pixels.ndim == 3 and pixels.shape[-1] == 1 else pixels
    return from_image(Image.fromarray(np.ascontiguousarray(pixels)), name, label, inputs)


def from_image(image: Image, name: str, label: int | None, inputs: Inputs) -> Sample | Unreadable:
    """The sample of a decoded image; what preprocessing cannot take counts as unreadable."""
    if inputs.preprocess is None:
        grey = inputs.shape == (math.prod(image.size),) if inputs.flattens else inputs.shape[0] == 1
        return Sample(name, _scaled(image, grey=grey), label)
    try:
        return Sample(name, inputs.preprocess(_in_mode(image, "RGB")), label)
    except Exception as error:  # it is the caller's function
        return Unreadable(name, f"preprocess: {brief(error)}")


def _plain(image: Image) -> Image:
    """Decoded, with 8 bits a channel; Pillow alone would clip 16-bit greys to white."""
    from PIL import Image

    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        return Image.fromarray((np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8))
    return image.convert("L" if image.mode in ("1", "L") else "RGB")


def _in_mode(image: Image, mode: str) -> Image:
    return image if image.mode == mode else image.convert(mode)


def _scaled(image: Image, *, grey: bool) -> Tensor:
    pixels = np.array(_in_mode(image, "L" if grey else "RGB"), np.float32) / 255
    height, width = pixels.shape[:2]
    return torch.from_numpy(pixels.reshape(height, width, -1)).permute(2, 0, 1).contiguous()


def _is_empty(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except OSError:
        return False
