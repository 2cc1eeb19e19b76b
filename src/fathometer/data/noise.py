"""Random noise in the shape of the network's input: a baseline that needs no files."""

from __future__ import annotations

import warnings

import numpy as np
import torch

from fathometer.data.source import Inputs, Sample, Samples
from fathometer.errors import InputError


class Noise(Samples):
    """Floats from N(0, 1), or tokens uniform below the vocabulary; sample i depends on (seed, i) alone."""

    def __init__(self, count: int, inputs: Inputs, seed: int, length: int | None = None) -> None:
        self._count, self._seed = count, seed
        self._vocabulary, self._shape = 0, inputs.shape
        if inputs.kind == "tokens":
            if not inputs.vocabulary:
                raise InputError(
                    "random: expected the size of the network's vocabulary, got none; "
                    "give a text file, or token ids in an .npy file"
                )
            self._vocabulary, self._shape = inputs.vocabulary, (inputs.check_length(length),)
        if inputs.size_assumed:
            warnings.warn(
                "random: the network and its preprocessing take images of several sizes; the noise has the "
                f"shape {list(inputs.shape)}. Let the factory return "
                "(module, Inputs('image', (channels, height, width), preprocess=...)) to set it",
                stacklevel=3,
            )
        self.description = {"kind": "random", "name": "random", "labels": False, "shape": list(self._shape)}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Sample:
        key = np.random.SeedSequence(self._seed, spawn_key=(index,))
        generator = np.random.Generator(np.random.SFC64(key))
        if self._vocabulary:
            ids = generator.integers(self._vocabulary, size=self._shape)
            return Sample(f"noise {index}", torch.from_numpy(ids))
        values = generator.standard_normal(self._shape, dtype=np.float32)
        return Sample(f"noise {index}", torch.as_tensor(values))
