"""What a network takes in, where neither its source nor the user says it: found by trying."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from fathometer.data import Inputs
from fathometer.errors import InputError, first_line, import_extra

if TYPE_CHECKING:
    from PIL.Image import Image

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_PROBES = (256, 320)  # pixels a side of images that show whether a preprocessing resizes
_SIDES = (224, 32, 28, 64, 96, 128, 256, 299, 384)
_SMALL_FIRST = (32, 28, 64, 96, 128, 224, 256, 299, 384)
_LENGTHS = (128, 64, 32, 16, 8)


def guess_inputs(module: nn.Module, name: str) -> Inputs:
    """Return the first description of inputs that the network runs on; images of 224 are tried first.

    The size is for noise. Images of a data set are scaled to [0, 1] and neither resized nor normalised.

    Example:
        >>> guess_inputs(nn.Sequential(nn.Linear(7, 3)), "mine").shape
        (7,)
    """
    advice = (
        "; let the factory return (module, Inputs(kind, shape)) or (module, preprocess), "
        "e.g. fathometer.data.Inputs('image', (3, 32, 32)); if it takes a list or a dict, give a call, too"
    )
    last: Exception | None = None
    for inputs in _candidates(module):
        last = _failure(module, inputs)
        if last is None:
            if inputs.kind == "tensor" and len(inputs.shape) == 1 and inputs.shape != (1,):
                # A linear layer alone takes no last axis of length 1; behind a flattening it does.
                column = replace(inputs, shape=(*inputs.shape, 1))
                return replace(inputs, flattens=_failure(module, column) is None)
            return inputs
    if last is None:
        raise InputError(f"{name}: its first layer does not tell what it takes" + advice)
    raise InputError(
        f"{name}: it runs on none of the inputs that were tried ({first_line(last)})" + advice
    ) from last


def inputs_with_preprocess(module: nn.Module, preprocess: Callable[[Image], Tensor]) -> Inputs:
    """Describe the images that a network takes after a preprocessing.

    If that keeps the size of images, the shape is the first one that the network runs on. Small sizes are
    tried first, because images that are not resized are mostly small.
    """
    shape, is_fixed = preprocessed_shape(preprocess)
    if is_fixed:
        return Inputs("image", shape, preprocess=preprocess)
    found = []
    for side in _SMALL_FIRST:
        inputs = Inputs("image", (shape[0], side, side), preprocess=preprocess)
        if _failure(module, inputs) is None:
            found.append(inputs)
        if len(found) == 2:
            break
    if not found:
        return Inputs("image", shape, preprocess=preprocess, size_assumed=True)
    return replace(found[0], size_assumed=len(found) > 1)


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


def preprocessed_shape(preprocess: Callable[[Image], Tensor]) -> tuple[tuple[int, ...], bool]:
    """Return the shape that `preprocess` gives, and whether it is the same for images of another size."""
    pillow = import_extra("PIL", "Image", extra="vision", purpose="an image", package="pillow")
    shapes = []
    for side in _PROBES:
        try:
            shapes.append(tuple(preprocess(pillow.Image.new("RGB", (side, side), "grey")).shape))
        except Exception as error:  # the user's code
            raise InputError(
                f"preprocess failed on an RGB image of {side} × {side} ({first_line(error)})"
            ) from error
        if len(shapes[-1]) != 3:
            raise InputError(f"expected [channels, height, width] from preprocess, got shape {shapes[-1]}")
    return shapes[0], shapes[0] == shapes[1]


def _candidates(module: nn.Module) -> Iterator[Inputs]:
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            for side in _SIDES:  # images keep their own size, because nobody said whether to resize them
                yield Inputs("image", (layer.in_channels, side, side))
            return
        if isinstance(layer, nn.Embedding):
            for length in _LENGTHS:
                yield Inputs("tokens", (length,), vocabulary=layer.num_embeddings)
            return
        if isinstance(layer, nn.Linear):
            yield Inputs("tensor", (layer.in_features,))
            return
        if isinstance(layer, nn.Conv1d):
            for length in (1024, *_LENGTHS):
                yield Inputs("tensor", (layer.in_channels, length))
            return
        if isinstance(layer, nn.RNNBase):
            yield Inputs("tensor", (_LENGTHS[0], layer.input_size))
            return


def _failure(module: nn.Module, inputs: Inputs) -> Exception | None:
    """Run the network on zeros, and return the error if it fails."""
    dtype = torch.long if inputs.kind == "tokens" else torch.float32
    try:
        with torch.no_grad():
            module(torch.zeros((2, *inputs.shape), dtype=dtype))
    except Exception as error:  # the user's code
        return error
    return None
