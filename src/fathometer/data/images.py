"""Folders of images, and images as samples: preprocessed as the network wants, or scaled to [0, 1].

Arrays of pixels are `[height, width]` or `[height, width, channels]`; results `[channels, height, width]`.
"""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import numpy.typing as npt
import torch

from fathometer.data.source import Inputs, Sample, Samples, Unreadable, display_name, is_hidden
from fathometer.errors import InputError, first_line, import_extra

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = npt.NDArray[np.uint8]

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".tif", ".tiff", ".gif")

_MAX_NAMED_CLASSES = 100_000

_SPLITS = {"train", "training", "val", "valid", "validation", "test"}


class ImageFolder(Samples):
    """The images below `root`, sorted by path; `files` lists all files there.

    Labels come from a `labels.csv` (columns `file`, relative to `root`, `class_index`, and perhaps `wnid`,
    the name of the class) if there is one.
    With one folder per class they are its position among the sorted folders, as in torchvision. Images that
    lie directly in `root` have none.
    """

    def __init__(self, root: Path, inputs: Inputs, files: Sequence[str]) -> None:
        self._root, self._inputs = root, inputs
        images = [PurePosixPath(file) for file in files if file.lower().endswith(IMAGE_SUFFIXES)]
        self._files = sorted(images, key=lambda file: file.parts)
        if not self._files:
            raise InputError(
                f"{root}: expected images ({' '.join(s[1:] for s in IMAGE_SUFFIXES)}), found none in it; "
                "give a folder of images, or one that holds a folder of images for each class"
            )
        self.labels, self.classes = _labels(root, self._files)
        self.labels_are_outputs = (root / "labels.csv").is_file()
        self.description = {"kind": "images", "name": display_name(root), "labels": self.labels is not None}

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> Sample | Unreadable:
        file = self._files[index]
        label = None if self.labels is None else self.labels[index]
        return from_file(self._root / file, str(file), label, self._inputs)


def _labels(root: Path, files: list[PurePosixPath]) -> tuple[list[int] | None, tuple[str, ...] | None]:
    """Return the label of each file, and the names of the classes where folders or a table name them."""
    table = root / "labels.csv"
    if table.is_file():
        known = _read_labels(table)
        missing = [str(file) for file in files if str(file) not in known]
        if missing:
            raise InputError(
                f"{table}: expected a row for each image, got none for {missing[0]} "
                f"({len(missing)} of {len(files)} are missing); add them, or remove the file"
            )
        rows = [known[str(file)] for file in files]
        return [index for index, _ in rows], _names(set(rows))
    flat = sum(len(file.parts) == 1 for file in files)
    if flat == len(files):
        return None, None
    if flat:
        raise InputError(
            f"{root}: expected images in class folders or directly in it, got both ({flat} of {len(files)} "
            "directly); move one kind away, or name all in a labels.csv (columns file, class_index)"
        )
    classes = sorted(f.name for f in root.iterdir() if f.is_dir() and not is_hidden(f.name))
    if {name.lower() for name in classes} <= _SPLITS:
        raise InputError(f"{root}: expected class folders, got {' and '.join(classes)}; give one of these")
    index = {name: i for i, name in enumerate(classes)}
    return [index[file.parts[0]] for file in files], tuple(classes)


def _names(rows: set[tuple[int, str]]) -> tuple[str, ...] | None:
    """Return the name of each class by its index, "" where it does not occur; None if some have none."""
    names = dict(rows)
    largest = max(names)
    if len(names) < len(rows) or not all(names.values()) or min(names) < 0 or largest >= _MAX_NAMED_CLASSES:
        return None
    return tuple(names.get(index, "") for index in range(largest + 1))


def _read_labels(table: Path) -> dict[str, tuple[int, str]]:
    """Return class index and wnid of each file; "" where there is no wnid."""
    try:
        with table.open(encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines, strict=True)
            columns = rows.fieldnames or []
            if not {"file", "class_index"} <= set(columns):
                raise InputError(
                    f"{table}: expected columns file and class_index, got {', '.join(columns) or 'none'}; "
                    "rename them, or remove the file"
                )
            return {
                row["file"]: (_class_index(row["class_index"], row["file"], table), row.get("wnid") or "")
                for row in rows
            }
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{table}: expected a table of labels, cannot read it ({first_line(error)})"
        ) from error


def _class_index(text: str | None, file: str, table: Path) -> int:
    try:
        return int(text or "")
    except ValueError:
        raise InputError(f"{table}: expected a whole number as class_index of {file}, got {text!r}") from None


def require_images(inputs: Inputs, path: Path) -> None:
    """Refuse images for a network that takes none, and report early that Pillow is missing."""
    if inputs.kind == "tokens":
        raise InputError(
            f"{path}: read as images, but this network takes tokens; expected a text file, "
            "an .npz or .npy file of token ids, or random"
        )
    if len(inputs.shape) != 3 and not inputs.flattens:
        raise InputError(
            f"{path}: read as images, but this network takes tensors of shape {list(inputs.shape)}; "
            "expected an .npz or .npy file of floats, or random"
        )
    import_extra("PIL", extra="vision", purpose="reading images", package="pillow")


def from_file(file: Path | BinaryIO, name: str, label: int | None, inputs: Inputs) -> Sample | Unreadable:
    """Read an image file, or the bytes of one."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata, large images
            with Image.open(file) as image:
                decoded = _with_8_bits(image)
    except Exception as error:  # decoders raise nearly anything on broken files
        return Unreadable(name, first_line(error))
    return _from_image(decoded, name, label, inputs)


def from_pixels(pixels: Pixels, name: str, label: int | None, inputs: Inputs) -> Sample | Unreadable:
    """Turn an array of bytes into a sample: grey, RGB or RGBA."""
    from PIL import Image

    pixels = pixels[..., 0] if pixels.ndim == 3 and pixels.shape[-1] == 1 else pixels
    return _from_image(Image.fromarray(np.ascontiguousarray(pixels)), name, label, inputs)


def _from_image(image: Image, name: str, label: int | None, inputs: Inputs) -> Sample | Unreadable:
    if inputs.preprocess is not None:
        try:
            return Sample(name, inputs.preprocess(_in_mode(image, "RGB")), label)
        except Exception as error:  # the user's function
            return Unreadable(name, f"preprocess: {type(error).__name__}: {first_line(error)}")
    grey = inputs.shape == (math.prod(image.size),) if inputs.flattens else inputs.shape[0] == 1
    pixels = np.array(_in_mode(image, "L" if grey else "RGB"), np.float32) / 255
    values = torch.from_numpy(pixels.reshape(*pixels.shape[:2], -1))
    return Sample(name, values.permute(2, 0, 1).contiguous(), label)


def _with_8_bits(image: Image) -> Image:
    """Decode an image to 8 bits a channel; Pillow alone would clip 16-bit greys to white."""
    from PIL import Image

    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        return Image.fromarray((np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8))
    return image.convert("L" if image.mode in ("1", "L") else "RGB")


def _in_mode(image: Image, mode: str) -> Image:
    return image if image.mode == mode else image.convert(mode)
