"""Texts as data of a measurement: their tokenizer and block length, and whether tokens fit the network."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import nn

from fathometer.data.hugging_face import DatasetImages
from fathometer.data.source import DataSource
from fathometer.data.texts import Tokenize, describe_dataset, is_dataset, open_dataset, open_texts
from fathometer.errors import InputError, check_whole
from fathometer.measuring.batches import DEFAULT_BATCH_SIZE, Piece
from fathometer.models import LoadedModel
from fathometer.models.language import config_of, ids_of, token_inputs, token_limits

_MAX_COPIES = 0.1  # share of the inputs that may occur before


def tokenised(
    model: nn.Module | LoadedModel,
    data: Any,
    tokenizer: Any,
    length: int | None,
    batch_size: int | None,
    seed: int,
) -> Any:
    """Return texts and Hugging Face data sets as batches, and other data as they are.

    Images of a data set need a model by name, which brings the preprocessing.
    """
    length = None if length is None else check_whole("length", length, 2)
    is_sequence = isinstance(data, Sequence) and not isinstance(data, str)
    are_texts = is_sequence and bool(data) and isinstance(data[0], str)
    if not are_texts and not is_dataset(data):
        if length is not None:
            raise InputError(
                f"has no effect on data of type {type(data).__name__}, only on texts; leave it out",
                parameter="length",
            )
        return data
    inputs = model.inputs if isinstance(model, LoadedModel) else token_inputs(model)
    size = batch_size or DEFAULT_BATCH_SIZE
    if inputs.kind == "image" and not are_texts and length is None:
        images = DatasetImages(data, inputs, describe_dataset(data))
        return DataSource(images, inputs, batch_size=size, seed=seed)
    if inputs.kind != "tokens":
        raise InputError(f"expected a network that takes tokens, got one for {inputs.kind}", parameter="data")
    if tokenizer is not None:
        inputs = replace(inputs, tokenize=Tokenize(tokenizer))
    if are_texts:
        return open_texts(data, inputs, length, size)
    return open_dataset(data, inputs, length, size, seed)


def checked(pieces: Iterable[Piece], network: nn.Module, *, holds_out: bool) -> Iterator[Piece]:
    """Yield the inputs of forward passes; refuse tokens that the network cannot take.

    With `holds_out`, inputs that occur several times are a warning.
    """
    limits = token_limits(network)
    is_warned = is_warned_of_copies = False
    seen: set[bytes] = set()
    inputs = 0
    for piece in pieces:
        limits.check(piece.value)
        ids = ids_of(piece.value)
        if ids is not None:
            seen.update(row.tobytes() for row in ids.cpu().numpy())
            inputs += len(ids)
        copies = inputs - len(seen)
        if holds_out and piece.completes and copies > _MAX_COPIES * inputs and not is_warned_of_copies:
            is_warned_of_copies = True
            warnings.warn(
                f"{copies} of the first {inputs} inputs are copies of others: R² of samples left out is that "
                "of samples that were fitted; remove copies",
                stacklevel=2,
            )
        if ids is not None and limits.trained and ids.shape[1] > limits.trained and not is_warned:
            is_warned = True
            warnings.warn(
                f"inputs of {ids.shape[1]} tokens are longer than the {limits.trained} positions that this "
                "network was trained on",
                stacklevel=2,
            )
        yield piece


def missing_input(network: nn.Module, value: Any) -> str:
    """Say what an encoder with a decoder lacks in an input on which it failed; nothing of other networks."""
    config = config_of(network)
    given = value if isinstance(value, Mapping) else {}
    if not getattr(config, "is_encoder_decoder", False) or {"decoder_input_ids", "labels"} & given.keys():
        return ""
    return (
        "; this is an encoder with a decoder, which needs an input of its own: in Python, give batches with "
        "decoder_input_ids, or measure the encoder alone, model.get_encoder()"
    )
