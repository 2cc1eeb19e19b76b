"""Noise in the shape of the network's input: a baseline that needs no files."""

from __future__ import annotations

import warnings

import numpy as np
import torch

from fathometer.data.inputs import Inputs
from fathometer.data.samples import Sample, Samples, refuse_length
from fathometer.data.tokens import block_length
from fathometer.errors import InputError

NOISE_COUNT = 50_000


class Noise(Samples):
    """Floats from N(0, 1), or tokens uniform below the vocabulary; sample i depends on (seed, i) alone."""

    all_readable = True

    def __init__(self, source: str, inputs: Inputs, seed: int, length: int | None = None) -> None:
        self._count = _count(source)
        self._seed = seed
        self._vocabulary = 0
        self._shape = inputs.shape
        self.description = {"kind": "random", "name": "random", "labels": False}
        if inputs.kind == "tokens":
            if not inputs.vocabulary:
                raise InputError(
                    "random: expected the size of the network's vocabulary, got none; "
                    "give a text file, or token ids in an .npy file"
                )
            self._vocabulary = inputs.vocabulary
            self._shape = (block_length(inputs, length),)
        else:
            refuse_length(length)
        if inputs.size_assumed:
            warnings.warn(
                f"random: the network and its preprocessing take images of several sizes; the noise has the "
                f"shape {list(inputs.shape)}. Let the factory return "
                "(module, Inputs('image', (channels, height, width), preprocess=...)) to set it",
                stacklevel=3,
            )
        self.description["shape"] = list(self._shape)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Sample:
        key = np.random.SeedSequence(self._seed, spawn_key=(index,))
        generator = np.random.Generator(np.random.SFC64(key))
        name = f"noise {index}"
        if self._vocabulary:
            ids = torch.from_numpy(generator.integers(self._vocabulary, size=self._shape))
            return Sample(name, ids, mask=torch.ones_like(ids))
        values = generator.standard_normal(self._shape, dtype=np.float32)
        return Sample(name, torch.as_tensor(values))


def is_noise(source: object) -> bool:
    """Whether a name asks for noise: `random` or `random:1000`. A file of that name is `./random`."""
    return isinstance(source, str) and source.partition(":")[0] == "random"


def _count(source: str) -> int:
    _, colon, text = source.partition(":")
    if not colon:
        return NOISE_COUNT
    if not (text.isascii() and text.isdigit() and int(text)):
        raise InputError(
            f"{source}: expected how many samples after the colon, got {text!r}; e.g. random:1000"
        )
    return int(text)
