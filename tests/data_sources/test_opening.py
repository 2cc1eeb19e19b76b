from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fathometer.data import Inputs, open_data
from fathometer.errors import InputError
from tests.data_sources.making import IMAGES, TOKENS, class_folders, save_image

KNOWN = "expected a folder of images"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    class_folders(tmp_path / "images", 4)
    save_image(tmp_path / "one.jpg", 1)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("some text")
    (tmp_path / "noname").write_bytes(b"\x80\x02\xff")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("gone", IMAGES, f"no such file or folder; {KNOWN}"),
        ("texts/a.txt", IMAGES, rf"takes images of shape \[3, 2, 2\]; {KNOWN}.* got a file of kind \.txt"),
        ("texts", IMAGES, "expected images .*found none"),
        ("images", TOKENS, "read as images, but this network takes tokens; expected a text file"),
        ("one.jpg", IMAGES, rf"{KNOWN}.*got a file of kind \.jpg"),
        ("noname", IMAGES, f"{KNOWN}.*got a file without a known ending"),
        ("noname", TOKENS, "expected a text in UTF-8, got other bytes"),
    ],
)
def test_data_that_cannot_be_opened_give_a_one_line_error(
    place: Path, name: str, inputs: Inputs, message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        open_data(place / name, inputs)
    assert "\n" not in str(caught.value)


def test_a_path_may_be_called_random(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "images").rename(place / "random")
    monkeypatch.chdir(place)
    assert len(open_data("random", IMAGES)) == 50_000
    assert len(open_data("./random", IMAGES)) == len(open_data(Path("random"), IMAGES)) == 4
    monkeypatch.chdir("random")
    assert open_data(".", IMAGES).description["name"] == "random"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size: expected a whole number from 1, got 0"),
        ({"workers": -1}, "workers: expected a whole number from 0, got -1"),
        ({"length": 5}, "length: expected none, because this network takes no tokens, got 5"),
    ],
)
def test_options_are_checked(place: Path, options: dict[str, Any], message: str) -> None:
    for source in ("random", place / "images"):
        with pytest.raises(InputError, match=message):
            open_data(source, IMAGES, **options)


def test_a_file_name_that_is_not_utf8(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"caf\xe9.npy")
    try:
        np.save(odd, np.zeros((2, 3, 8, 8), np.float32))
    except OSError:
        pytest.skip("the file system takes text alone")
    assert open_data(odd, Inputs("image", (3, 8, 8))).description["name"] == "caf?.npy"


def test_numbers_of_numpy_are_whole_numbers() -> None:
    options: dict[str, Any] = {"batch_size": np.int64(8), "seed": np.int32(1), "workers": np.int64(0)}
    batches: list[Any] = list(open_data("random:20", IMAGES, **options))
    expected: list[Any] = list(open_data("random:20", IMAGES, batch_size=8, seed=1))
    assert [len(batch) for batch in batches] == [8, 8, 4]
    assert all(batch.equal(other) for batch, other in zip(batches, expected, strict=True))
