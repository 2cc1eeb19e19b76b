"""A stream of token ids, cut in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fathometer.data.inputs import Inputs
from fathometer.data.samples import Sample, Samples
from fathometer.errors import InputError

Ids = npt.NDArray[np.integer[Any]]


class Blocks(Samples):
    """`ids`, one after the other, in blocks of `length`.

    What is left at the end is padded with id 0 and masked, if it has two tokens or more; a single token
    is dropped.
    """

    all_readable = True

    def __init__(self, ids: Ids, length: int, description: dict[str, object]) -> None:
        self._ids, self._length = ids, length
        rest = len(ids) % length
        self._count = len(ids) // length + (rest > 1)
        self.description = {**description, "labels": False, "length": length, "tokens": len(ids)}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Sample:
        start = index * self._length
        block = self._ids[start : start + self._length]
        ids, mask = np.zeros((2, self._length), np.int64)
        ids[: len(block)] = block
        mask[: len(block)] = 1
        return Sample(f"block {index}", torch.from_numpy(ids), mask=torch.from_numpy(mask))


def block_length(inputs: Inputs, length: int | None) -> int:
    """How many tokens a sample has: what the caller says, or what the network says."""
    found = length if length is not None else next(iter(inputs.shape), 0)
    if found < 1:
        raise InputError(f"expected a length of at least one token, got {found}; give length, e.g. 128")
    if inputs.positions is not None and found > inputs.positions:
        raise InputError(f"length: this network has {inputs.positions} positions, got {found}")
    return found


def check_ids(ids: Ids, inputs: Inputs, source: str) -> None:
    """Refuse ids that the network has no embedding for."""
    low, high = int(ids.min()), int(ids.max())
    limit = inputs.vocabulary
    if low < 0 or (limit is not None and high >= limit):
        expected = "0 or more" if limit is None else f"from 0 to {limit - 1}"
        raise InputError(
            f"{source}: expected token ids {expected}, got {low if low < 0 else high}; "
            "take the tokenizer of this network"
        )
