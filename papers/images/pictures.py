"""Labelled small images: CIFAR-10 if the user has it, digits that come with scikit-learn if not.

Pixels are uint8, `[n, 3, size, size]`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias
from zipfile import BadZipFile

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fathometer.errors import InputError, MissingExtraError
from papers.item import RunContext

Split: TypeAlias = Literal["train", "test"]

HELD_OUT = 500  # of the 1797 digits
DIGITS = 16  # pixels that they are enlarged to
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_RECORD = 1 + 3 * 32 * 32  # bytes of a label and an image in CIFAR-10's binaries


class Pictures(NamedTuple):
    """Images and their labels."""

    pixels: Tensor  # uint8, `[n, 3, size, size]`
    labels: Tensor  # int64, `[n]`

    def normalised(self) -> Tensor:
        """`(pixels / 255 − mean) / std`, float32."""
        return normalised(self.pixels)


def normalised(pixels: Tensor) -> Tensor:
    """Of uint8 pixels, with ImageNet's mean and standard deviation."""
    mean, std = (
        torch.tensor(v, device=pixels.device).reshape(3, 1, 1) for v in (IMAGENET_MEAN, IMAGENET_STD)
    )
    return (pixels.float() / 255 - mean) / std


def size_of(context: RunContext) -> int:
    """Return the size of the images at this scale: 32 pixels, or 16 to save time."""
    return context.pick(smoke=DIGITS, small=DIGITS, paper=32)


def pictures(context: RunContext, split: Split) -> Pictures:
    """Load the images that networks are trained and measured on at this scale."""
    if context.scale == "paper":
        return cifar10(context.source("cifar10"), split)
    return digits(split)


def digits(split: Split) -> Pictures:
    """Load scikit-learn's 8 × 8 digits, enlarged: 1297 for training, 500 held out.

    Example:
        >>> digits("test").pixels.shape
        torch.Size([500, 3, 16, 16])
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "papers", "a small data set") from error
    found = load_digits()
    small = torch.from_numpy(found.images).float()[:, None] / 16
    large = F.interpolate(small, size=(DIGITS, DIGITS), mode="bilinear", align_corners=False)
    pixels = (255 * large).round().to(torch.uint8).expand(-1, 3, -1, -1).contiguous()
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(pixels)))
    chosen = order[:HELD_OUT] if split == "test" else order[HELD_OUT:]
    return Pictures(pixels[chosen], torch.from_numpy(found.target)[chosen].long())


def cifar10(folder: Path, split: Split) -> Pictures:
    """Read `cifar10_train.npz` and `cifar10_test.npz` (`x` and `y`), or the binary version."""
    file = folder / f"cifar10_{split}.npz"
    if file.is_file():
        try:
            with np.load(file, allow_pickle=False) as arrays:
                pixels, labels = arrays["x"], arrays.get("y")
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise InputError(f"{file}: expected arrays x and y ({error})") from error
        if pixels.shape[1:] != (32, 32, 3) or pixels.dtype != np.uint8:
            raise InputError(
                f"{file}: expected x of uint8, [n, 32, 32, 3], got {pixels.dtype}, {list(pixels.shape)}"
            )
        if labels is None or labels.shape != pixels.shape[:1]:
            raise InputError(f"{file}: expected y, a label for each of {len(pixels)} images")
        pixels = pixels.transpose(0, 3, 1, 2)
    else:
        pixels, labels = _from_binaries(folder, split)
    return Pictures(torch.from_numpy(np.ascontiguousarray(pixels)), torch.from_numpy(labels.astype(np.int64)))


def _from_binaries(folder: Path, split: Split) -> tuple[np.ndarray, np.ndarray]:
    names = {"train": "data_batch_*.bin", "test": "test_batch.bin"}
    places = [folder, folder / "cifar-10-batches-bin"]
    files = next((found for place in places if (found := sorted(place.glob(names[split])))), [])
    if not files:
        raise InputError(
            f"--cifar10 {folder}: expected {names[split]} or cifar10_{split}.npz, found neither; the binary "
            "version of CIFAR-10 has the former"
        )
    records = np.concatenate([np.frombuffer(file.read_bytes(), np.uint8) for file in files])
    if len(records) % _RECORD:
        raise InputError(
            f"{folder}: expected records of {_RECORD} bytes in {names[split]}, got {len(records)} bytes"
        )
    records = records.reshape(-1, _RECORD)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0]
