"""Files and networks' inputs for the tests of data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from fathometer.data import DataSource, Inputs


def first_red(image: Image.Image) -> Tensor:
    """A preprocess that keeps the colour of the first pixel: images can be told apart afterwards."""
    assert image.mode == "RGB"
    pixel = torch.tensor(image.getpixel((0, 0)), dtype=torch.float32)
    return pixel[:, None, None].expand(3, 2, 2).clone()


IMAGES = Inputs("image", (3, 2, 2), preprocess=first_red)
RAW = Inputs("image", (3, 4, 6))
TOKENS = Inputs("tokens", (4,), vocabulary=256, tokenize=lambda text: list(text.encode()))
TENSOR = Inputs("tensor", (5,))


def save_image(path: Path, value: int, size: tuple[int, int] = (6, 4), mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, (value,) * 3 if mode == "RGB" else value).save(path)


def class_folders(root: Path, count: int = 20) -> Path:
    """Two classes; the value of image i is i, so that its first red is too."""
    for i in range(count):
        save_image(root / ("ant" if i < count // 2 else "bee") / f"{i:03}.png", i)
    return root


class Bomb:
    """A pickle that fails the test when it is opened."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return pytest.fail, ("it was unpickled",)


def tensors(source: DataSource) -> list[Tensor]:
    found = []
    for batch in source:
        first = batch["input_ids"] if isinstance(batch, dict) else batch
        found.append(first[0] if isinstance(first, tuple) else first)
    return found


def labels(source: DataSource) -> list[int]:
    found: list[int] = []
    for batch in source:
        assert isinstance(batch, tuple)
        found += batch[1].tolist()
    return found


def values(source: DataSource) -> list[float]:
    """The first entry of each sample, in order."""
    return [v for x in tensors(source) for v in x.flatten(1)[:, 0].tolist()]


def cifar_records(count: int, *, fine: bool = False, classes: int = 10) -> bytes:
    """Record i has label i modulo the classes, and channels filled with i, i + 1 and i + 2."""
    records = []
    for i in range(count):
        pixels = np.repeat(np.array([i, i + 1, i + 2], np.uint8), 32 * 32)
        records.append(bytes([0] * fine + [i % classes]) + pixels.tobytes())
    return b"".join(records)
