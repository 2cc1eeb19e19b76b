"""Separate texts, and Hugging Face data sets of texts or token ids, as batches of tokens with a mask."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from fathometer.data.source import Inputs
from fathometer.errors import InputError, first_line

Row: TypeAlias = "dict[str, list[int]]"
"""The token ids of one text, its mask and its token types, where it has them."""

IDS, MASK = "input_ids", "attention_mask"
_COLUMNS = (IDS, MASK, "token_type_ids")


@dataclass(frozen=True)
class Tokenize:
    """Turns a text into token ids with a tokenizer of transformers, or with a function that returns ids."""

    tokenizer: Any

    def __call__(self, text: str) -> list[int]:
        """Return the ids of a part of a longer text, without special tokens."""
        return self._ids(text, add_special_tokens=False)

    def whole(self, text: str) -> list[int]:
        """Return the ids of a complete text, with the special tokens that the tokenizer adds."""
        return self._ids(text)

    def _ids(self, text: str, **options: Any) -> list[int]:
        if hasattr(self.tokenizer, "convert_tokens_to_ids"):
            options["verbose"] = False  # texts may be longer than the context: they are cut afterwards
            return list(self.tokenizer(text, **options)[IDS])
        found = self.tokenizer(text)
        return list(found[IDS] if isinstance(found, Mapping) else found)


class Texts:
    """Batches of token ids and masks, both `[b, t]`, the same in every pass.

    Each text is cut into consecutive blocks of `length` tokens, which do not overlap; shorter ones are padded
    to the longest of their batch and masked. A single token that is left over is dropped.

    Attributes:
        description: what the data are, as JSON; with the block length, and the stride, which is the same.
    """

    def __init__(
        self,
        rows: Callable[[], Iterator[Row]],
        length: int | None,
        batch_size: int,
        description: Mapping[str, object],
    ) -> None:
        self._rows, self._length, self._batch_size = rows, length, batch_size
        self.description = {**description, "length": length, "stride": length}

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        blocks = self._blocks()
        while batch := list(islice(blocks, self._batch_size)):
            yield {name: _padded([block[name] for block in batch]) for name in batch[0]}

    def _blocks(self) -> Iterator[Row]:
        for row in self._rows():
            count = len(row[IDS])
            length = self._length or max(count, 1)
            for start in range(0, count, length):
                if start == 0 or count - start > 1:
                    yield {name: values[start : start + length] for name, values in row.items()}


def open_texts(texts: Sequence[Any], inputs: Inputs, length: int | None, batch_size: int) -> Texts:
    """Tokenise separate texts, in their order, each with the special tokens of the tokenizer."""
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"expected texts, got {type(text).__name__} at index {place}", parameter="data")
    tokenize = _tokenizer(inputs)
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d\0%b" % (len(data), data))
    facts = {"kind": "texts", "name": "texts", "texts": len(texts), "sha256": digest.hexdigest()}
    rows = partial(_tokenised, texts, tokenize)
    return Texts(rows, inputs.check_length(length), batch_size, facts)


def is_dataset(data: Any) -> bool:
    """Return whether data are a data set of the library `datasets`, or a dict of its splits.

    A column is a sequence of values instead.
    """
    return not isinstance(data, Sequence) and any(
        kind.__module__.partition(".")[0] == "datasets" for kind in type(data).__mro__
    )


def open_dataset(data: Any, inputs: Inputs, length: int | None, batch_size: int, seed: int) -> Texts:
    """Read the column `input_ids` of a Hugging Face data set, or tokenise its text.

    Rows are shuffled by the seed, unless they are streamed. Rows of ids are cut only if a `length` is given.
    """
    facts = describe_dataset(data)
    first = next(iter(data), None)
    if first is None:
        raise InputError("expected texts or token ids, got an empty data set", parameter="data")
    has_ids = IDS in first
    column = IDS if has_ids else _text_column(first)
    is_streamed = not hasattr(data, "__len__")

    def shuffled() -> Iterator[Any]:
        if is_streamed:
            return iter(data)
        return (data[index] for index in np.random.default_rng(seed).permutation(len(data)).tolist())

    def rows() -> Iterator[Row]:
        if not has_ids:
            return _tokenised((row[column] for row in shuffled()), tokenize)
        return map(_row_of_ids, shuffled())

    facts["column"] = column
    if not is_streamed:
        facts |= {"rows": len(data), "seed": seed}
    if has_ids:
        return Texts(rows, None if length is None else inputs.check_length(length), batch_size, facts)
    tokenize = _tokenizer(inputs)
    return Texts(rows, inputs.check_length(length), batch_size, facts)


def describe_dataset(data: Any) -> dict[str, object]:
    """Say what a Hugging Face data set is; refuse a dict of several."""
    if isinstance(data, Mapping):
        splits = ", ".join(map(str, data))
        raise InputError(f"expected one split, got a dict of {splits}; give data[name]", parameter="data")
    if not hasattr(data, "info"):
        raise InputError("expected a data set, got a column of a stream; give the stream", parameter="data")
    return {
        "kind": "dataset",
        "name": str(data.info.dataset_name or "datasets.Dataset"),
        "split": str(data.split or ""),
        "fingerprint": getattr(data, "_fingerprint", None),
    }


def text_column(strings: Sequence[str]) -> str | None:
    """Return the column of the texts, of those that have strings: text, content, or the only one."""
    only = strings[0] if len(strings) == 1 else None
    return next((name for name in ("text", "content") if name in strings), only)


def _tokenizer(inputs: Inputs) -> Callable[[str], list[int]]:
    tokenize = inputs.tokenize
    if tokenize is None:
        raise InputError(
            "texts need one, and this network came without one; give a tokenizer of transformers, or a "
            "function that returns the ids of a text",
            parameter="tokenizer",
        )
    return tokenize.whole if isinstance(tokenize, Tokenize) else tokenize


def _tokenised(texts: Any, tokenize: Callable[[str], list[int]]) -> Iterator[Row]:
    for text in texts:
        try:
            ids = np.asarray(tokenize(text), np.int64).reshape(-1).tolist()
        except Exception as error:  # the user's function
            raise InputError(
                f"it failed on a text ({first_line(error)}); expected a list of ids", parameter="tokenizer"
            ) from error
        if ids:
            yield {IDS: ids, MASK: [1] * len(ids)}


def _row_of_ids(row: Mapping[str, Any]) -> Row:
    found = {name: np.asarray(row[name]).reshape(-1).tolist() for name in _COLUMNS if name in row}
    return {MASK: [1] * len(found[IDS]), **found}


def _text_column(row: Mapping[str, Any]) -> str:
    found = text_column([name for name, value in row.items() if isinstance(value, str)])
    if found is not None:
        return found
    raise InputError(
        f"expected a data set with a column input_ids, or text, got the columns {', '.join(row)}; "
        "select or rename one, data.rename_column(name, 'text'), or give a DataLoader",
        parameter="data",
    )


def _padded(rows: Sequence[Sequence[int]]) -> Tensor:
    found = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    for row, values in zip(found, rows, strict=True):
        row[: len(values)] = torch.tensor(values)
    return found
