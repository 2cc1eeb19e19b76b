"""What a network takes in, guessed from its first layer and tried out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from fathometer.data.inputs import Inputs
from fathometer.errors import InputError, first_line
from fathometer.models.images import shape_of

if TYPE_CHECKING:
    from PIL.Image import Image

SIDES = (224, 32, 28, 64, 96, 128, 256, 299, 384)
SMALL_FIRST = (32, 28, 64, 96, 128, 224, 256, 299, 384)
LENGTHS = (128, 64, 32, 16, 8)


def guess_inputs(module: nn.Module, name: str) -> Inputs:
    """Return the first description of inputs that the network runs on; images of 224 are tried first.

    The size is for noise. Images of a data set are scaled to [0, 1] and neither resized nor normalised.

    Example:
        >>> guess_inputs(nn.Sequential(nn.Linear(7, 3)), "mine").shape
        (7,)
    """
    advice = (
        "; let the factory return (module, Inputs(kind, shape)) or (module, preprocess), "
        "e.g. Inputs('image', (3, 32, 32))"
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
        raise InputError(f"{name}: its first layer does not tell what it takes in" + advice)
    raise InputError(f"{name}: no guess of what it takes in runs ({first_line(last)})" + advice) from last


def inputs_after(module: nn.Module, preprocess: Callable[[Image], Tensor]) -> Inputs:
    """Describe the images that a network takes after a preprocessing.

    If that keeps the size of images, the shape is the first one that the network runs on. Small sizes are
    tried first, because images that are not resized are mostly small.
    """
    shape, is_fixed = shape_of(preprocess)
    if is_fixed:
        return Inputs("image", shape, preprocess=preprocess)
    found = []
    for side in SMALL_FIRST:
        inputs = Inputs("image", (shape[0], side, side), preprocess=preprocess)
        if _failure(module, inputs) is None:
            found.append(inputs)
        if len(found) == 2:
            break
    if not found:
        return Inputs("image", shape, preprocess=preprocess, size_assumed=True)
    return replace(found[0], size_assumed=len(found) > 1)


def _candidates(module: nn.Module) -> Iterator[Inputs]:
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            for side in SIDES:  # images keep their own size, because nobody said whether to resize them
                yield Inputs("image", (layer.in_channels, side, side))
            return
        if isinstance(layer, nn.Embedding):
            for length in LENGTHS:
                yield Inputs("tokens", (length,), vocabulary=layer.num_embeddings)
            return
        if isinstance(layer, nn.Linear):
            yield Inputs("tensor", (layer.in_features,))
            return
        if isinstance(layer, nn.Conv1d):
            for length in (1024, *LENGTHS):
                yield Inputs("tensor", (layer.in_channels, length))
            return
        if isinstance(layer, nn.RNNBase):
            yield Inputs("tensor", (LENGTHS[0], layer.input_size))
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
