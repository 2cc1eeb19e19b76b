"""CIFAR-10 and CIFAR-100 in their binary version: records of labels and 3072 bytes, `[3, 32, 32]`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fathometer.data.images import from_pixels
from fathometer.data.source import Inputs, Sample, Samples, Unreadable, display_name
from fathometer.errors import InputError, first_line

_PIXELS = 3 * 32 * 32


class _Layout(NamedTuple):
    name: str
    labels: int  # bytes before the pixels; the last is the (fine) label
    classes: int
    splits: dict[str, str]  # the preferred one comes first
    folder: str
    names: str  # the file of the names of the classes

    @property
    def record(self) -> int:
        return self.labels + _PIXELS


_LAYOUTS = (
    _Layout(
        *("CIFAR-10", 1, 10, {"test": "test_batch.bin", "train": "data_batch_*.bin"}),
        *("cifar-10-batches-bin", "batches.meta.txt"),
    ),
    _Layout(
        *("CIFAR-100", 2, 100, {"test": "test.bin", "train": "train.bin"}),
        *("cifar-100-binary", "fine_label_names.txt"),
    ),
)
# Files or folders that show the pickled version.
_PICKLED = (("batches.meta",), ("cifar-10-batches-py",), ("cifar-100-python",), ("meta", "test"))


class Cifar(Samples):
    """CIFAR from a folder, the test set if it has one, otherwise the training set; or from one file.

    Attributes:
        pixels: uint8, `[n, 3, 32, 32]`.
        labels: uint8, `[n]`; the fine ones of CIFAR-100.
    """

    labels: npt.NDArray[np.uint8]

    def __init__(self, path: Path, inputs: Inputs) -> None:
        layout, split, files = _in_folder(path) if path.is_dir() else _of_file(path)
        records = np.concatenate([_records(file, layout) for file in files])
        self.labels = records[:, layout.labels - 1]
        self.pixels = records[:, layout.labels :].reshape(-1, 3, 32, 32)
        self.classes = _class_names(files[0].with_name(layout.names), layout.classes)
        self._inputs = inputs
        if self.labels.max() >= layout.classes:
            raise InputError(
                f"{path}: expected labels of {layout.name} below {layout.classes}, "
                f"got {self.labels.max()}; this is another kind of file"
            )
        self.description = {
            "kind": layout.name,
            "name": display_name(path),
            "labels": True,
            "split": split,
            "files": [file.name for file in files],
        }

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample | Unreadable:
        pixels = self.pixels[index].transpose(1, 2, 0)
        return from_pixels(pixels, f"image {index}", int(self.labels[index]), self._inputs)


def is_cifar(folder: Path) -> bool:
    """Say whether a folder holds CIFAR, in the binary or in the pickled version."""
    return bool(_found(folder)) or any(all((folder / name).exists() for name in names) for names in _PICKLED)


def _found(folder: Path) -> list[tuple[_Layout, str, list[Path]]]:
    """Return each data set in a folder, or in the usual folder inside it, with its preferred split."""
    found = []
    for layout in _LAYOUTS:
        for place in (folder, folder / layout.folder):
            splits = ((name, sorted(place.glob(pattern))) for name, pattern in layout.splits.items())
            found += [(layout, name, files) for name, files in splits if files][:1]
    return found


def _in_folder(folder: Path) -> tuple[_Layout, str, Sequence[Path]]:
    found = _found(folder)
    if not found:
        raise InputError(
            f"{folder}: expected the binary version of CIFAR, got the Python one, which is pickled and never "
            "opened; download cifar-10-binary.tar.gz or cifar-100-binary.tar.gz"
        )
    if len(found) > 1:
        names = " and ".join(f"{files[0].relative_to(folder)}" for _, _, files in found)
        raise InputError(f"{folder}: expected one data set, got {names}; give the folder or file of one")
    return found[0]


def _of_file(file: Path) -> tuple[_Layout, str | None, Sequence[Path]]:
    for layout in _LAYOUTS:
        for split, pattern in layout.splits.items():
            if file.match(pattern):
                return layout, split, [file]
    size = file.stat().st_size
    for layout in _LAYOUTS:
        if size and size % layout.record == 0:
            return layout, None, [file]
    sizes = " or ".join(f"{layout.record} ({layout.name})" for layout in _LAYOUTS)
    raise InputError(
        f"{file}: expected CIFAR in records of {sizes} bytes, got {size} bytes; is it truncated?"
    )


def _class_names(file: Path, count: int) -> tuple[str, ...]:
    """Return the names that the file beside the data has, or numbers if there is none."""
    names = file.read_text("utf-8").split() if file.is_file() else []
    return tuple(names) if len(names) == count else tuple(map(str, range(count)))


def _records(file: Path, layout: _Layout) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    try:
        content = np.fromfile(file, np.uint8)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({first_line(error)})") from error
    if not len(content) or len(content) % layout.record:
        raise InputError(
            f"{file}: expected {layout.name} in whole records of {layout.record} bytes, "
            f"got {len(content)} bytes; the file is truncated, download it again"
        )
    return content.reshape(-1, layout.record)
