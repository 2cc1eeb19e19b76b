from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fathometer.data import Inputs, open_data
from fathometer.errors import InputError
from tests.data_sources.making import TOKENS, tensors


def _write(folder: Path, text: str, name: str = "a.txt") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_blocks_and_padding(tmp_path: Path) -> None:
    source = open_data(_write(tmp_path, "abcdefghij"), TOKENS, shuffle=False)
    (batch,) = source
    assert isinstance(batch, dict)
    assert [bytes(row) for row in batch["input_ids"].tolist()] == [b"abcd", b"efgh", b"ij\0\0"]
    assert batch["attention_mask"].tolist() == [[1] * 4, [1] * 4, [1, 1, 0, 0]]
    assert batch["input_ids"].dtype == batch["attention_mask"].dtype == torch.int64
    assert source.description["kind"] == "text"
    assert source.description["tokens"] == 10


@pytest.mark.parametrize(
    ("name", "text", "rows"),
    [
        ("README.md", "abcdefghi", [b"abcd", b"efgh"]),  # a single token at the end is dropped
        ("LICENSE", "\ufeffab", [b"ab\0\0"]),  # and so is the byte order mark
        ("b.TXT", "naïvety", ["naï".encode(), b"vety"]),
    ],
)
def test_any_text_file_is_accepted(name: str, text: str, rows: list[bytes], tmp_path: Path) -> None:
    (x,) = tensors(open_data(_write(tmp_path, text, name), TOKENS, shuffle=False))
    assert [bytes(row) for row in x.tolist()] == rows


def test_the_length_can_be_chosen(tmp_path: Path) -> None:
    path = _write(tmp_path, "abcdefghij")
    for length, shape in ((1, (10, 1)), (5, (2, 5)), (100, (1, 100))):
        source = open_data(path, TOKENS, length=length)
        assert len(source) == shape[0]
        assert tensors(source)[0].shape == shape
        assert source.description["length"] == length


@pytest.mark.parametrize(
    ("content", "inputs", "message"),
    [
        (b"ab", Inputs("tokens", (4,), 256), "a text needs a tokenizer, and this network came without one"),
        (b"a", TOKENS, "at least 2 tokens, got 1"),
        (b"ab\xff\xfe", TOKENS, r"expected a text in UTF-8, got other bytes \(at 2\)"),
        (b"ab", Inputs("tokens", (4,), 98, tokenize=TOKENS.tokenize), "ids from 0 to 97, got 98"),
        (b"ab", Inputs("tokens", (4,), tokenize=lambda _: [-1, 3]), "expected token ids 0 or more, got -1"),
        (b"ab", Inputs("tokens", (4,), tokenize=lambda t: [int(t)]), "the tokenizer failed .invalid literal"),
        (b"ab", Inputs("tokens", (), tokenize=TOKENS.tokenize), "length: expected at least one token, got 0"),
    ],
)
def test_unsuitable_texts_are_refused(tmp_path: Path, content: bytes, inputs: Inputs, message: str) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        open_data(tmp_path / "a.txt", inputs)
    assert "\n" not in str(caught.value)
