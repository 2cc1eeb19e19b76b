"""A text file for a language model."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fathometer.data.inputs import Inputs
from fathometer.data.samples import brief, own_name
from fathometer.data.tokens import Blocks, Ids, block_length, check_ids
from fathometer.errors import InputError


def text_blocks(path: Path, inputs: Inputs, length: int | None = None) -> Blocks:
    """The text in UTF-8 as one stream of tokens, cut in blocks of `length`."""
    if inputs.tokenize is None:
        raise InputError(
            f"{path}: a text needs a tokenizer, and this network came without one; "
            "give an .npz or .npy file of token ids, or random"
        )
    length = block_length(inputs, length)
    ids = _tokens(_read(path), inputs, path)
    if len(ids) < 2:
        raise InputError(f"{path}: expected a text of at least 2 tokens, got {len(ids)}; give a longer one")
    check_ids(ids, inputs, str(path))
    return Blocks(ids, length, {"kind": "text", "name": own_name(path)})


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: this network takes tokens; expected a text in UTF-8, got other bytes "
            f"(at {error.start}); convert it, or give an .npz or .npy file of token ids, or random"
        ) from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({brief(error)})") from error


def _tokens(text: str, inputs: Inputs, path: Path) -> Ids:
    assert inputs.tokenize is not None
    try:
        return np.array(inputs.tokenize(text), np.int64).reshape(-1)
    except Exception as error:  # it is the caller's function
        raise InputError(f"{path}: the tokenizer failed ({brief(error)}); expected a list of ids") from error
