"""Text files and streams of token ids, cut into samples of equal length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fathometer.data.source import Inputs, Sample, Samples, display_name
from fathometer.errors import InputError, first_line

Ids = npt.NDArray[np.integer[Any]]


class Tokens(Samples):
    """Token ids in consecutive blocks of `length`, which do not overlap.

    A rest of two or more tokens is padded with id 0 and masked; a single token is dropped. A larger `stride`
    says that the ids between blocks were left out.
    """

    def __init__(
        self, ids: Ids, length: int, description: dict[str, object], *, stride: int | None = None
    ) -> None:
        self._ids, self._length = ids, length
        self._count = len(ids) // length + (len(ids) % length > 1)
        blocks = {"length": length, "stride": stride or length, "tokens": len(ids)}
        self.description = {**description, "labels": False, **blocks}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Sample:
        start = index * self._length
        block = self._ids[start : start + self._length]
        ids, mask = np.zeros((2, self._length), np.int64)
        ids[: len(block)] = block
        mask[: len(block)] = 1
        return Sample(f"block {index}", torch.from_numpy(ids), mask=torch.from_numpy(mask))


def open_text(path: Path, inputs: Inputs, length: int | None) -> Tokens:
    """Read a text in UTF-8 as one stream of tokens."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: this network takes tokens; expected a text in UTF-8, got other bytes "
            f"(at {error.start}); convert it, or give an .npz or .npy file of token ids, or random"
        ) from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({first_line(error)})") from error
    return tokens_of(text, inputs, length, path, {"kind": "text", "name": display_name(path)})


def tokens_of(
    text: str, inputs: Inputs, length: int | None, path: Path | str, description: dict[str, object]
) -> Tokens:
    """Tokenise a text as one stream."""
    if inputs.tokenize is None:
        raise InputError(
            f"{path}: a text needs a tokenizer, and this network came without one; "
            "give an .npz or .npy file of token ids, or random"
        )
    length = inputs.check_length(length)
    try:
        ids = np.array(inputs.tokenize(text), np.int64).reshape(-1)
    except Exception as error:  # the user's function
        raise InputError(
            f"{path}: the tokenizer failed ({first_line(error)}); expected a list of ids"
        ) from error
    if len(ids) < 2:
        raise InputError(f"{path}: expected a text of at least 2 tokens, got {len(ids)}; give a longer one")
    check_ids(ids, inputs, path)
    return Tokens(ids, length, description)


def check_ids(ids: Ids, inputs: Inputs, path: Path | str) -> None:
    """Refuse ids that the network has no embedding for."""
    low, high = int(ids.min()), int(ids.max())
    limit = inputs.vocabulary
    if low < 0 or (limit is not None and high >= limit):
        expected = "0 or more" if limit is None else f"from 0 to {limit - 1}"
        raise InputError(
            f"{path}: expected token ids {expected}, got {low if low < 0 else high}; "
            "use the tokenizer of this network"
        )
