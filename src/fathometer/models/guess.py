"""What a network takes in, guessed from its first layer and tried out."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from fathometer.data.inputs import Inputs
from fathometer.errors import InputError, first_line

SIDES = (224, 32, 28, 64, 96, 128, 256, 299, 384)
LENGTHS = (128, 64, 32, 16, 8)


def guess_inputs(module: nn.Module, name: str) -> Inputs:
    """The first description that the network runs on; images of 224 come before smaller ones.

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
        try:
            with torch.no_grad():
                module(_sample(inputs))
        except Exception as error:  # the code of others
            last = error
        else:
            return inputs
    if last is None:
        raise InputError(f"{name}: its first layer does not tell what it takes in" + advice)
    raise InputError(f"{name}: no guess of what it takes in runs ({first_line(last)})" + advice) from last


def _candidates(module: nn.Module) -> Iterator[Inputs]:
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            for side in SIDES:  # images keep their own size: whether it is to be changed nobody said
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


def _sample(inputs: Inputs) -> Tensor:
    kind = torch.long if inputs.kind == "tokens" else torch.float32
    return torch.zeros((2, *inputs.shape), dtype=kind)
