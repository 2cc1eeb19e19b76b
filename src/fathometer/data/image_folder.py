"""Folders of images: one folder per class, a flat folder, or a `labels.csv` with the classes."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from fathometer.data.files import File, is_hidden, list_files
from fathometer.data.images import from_file, require_images
from fathometer.data.inputs import Inputs
from fathometer.data.source import Sample, Samples, Unreadable, in_one_line, own_name
from fathometer.errors import InputError

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".tif", ".tiff", ".gif")

_SPLITS = {"train", "training", "val", "valid", "validation", "test"}


class ImageFolder(Samples):
    """The images below `root`, sorted by path; `files` are its files if they were listed already.

    Labels come from a `labels.csv` (columns `file`, relative to `root`, and `class_index`) if there is one.
    With one folder per class they are its position among the sorted folders, as in torchvision. Images that
    lie directly in `root` have none.
    """

    def __init__(self, root: Path, inputs: Inputs, files: Sequence[File] | None = None) -> None:
        require_images(inputs, root)
        self._root, self._inputs = root, inputs
        names = [file.name for file in (list_files(root) if files is None else files)]
        images = [PurePosixPath(name) for name in names if name.lower().endswith(IMAGE_SUFFIXES)]
        self._files = sorted(images, key=lambda file: file.parts)
        if not self._files:
            raise InputError(
                f"{root}: expected images ({' '.join(s[1:] for s in IMAGE_SUFFIXES)}), found none in it; "
                "give a folder of images, or one that holds a folder of images for each class"
            )
        self._labels = _labels(root, self._files)
        self.description = {
            "kind": "images",
            "name": own_name(root),
            "labels": self._labels is not None,
        }

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> Sample | Unreadable:
        file = self._files[index]
        label = None if self._labels is None else self._labels[index]
        return from_file(self._root / file, str(file), label, self._inputs)


def _labels(root: Path, files: list[PurePosixPath]) -> list[int] | None:
    table = root / "labels.csv"
    if table.is_file():
        known = _read_labels(table)
        missing = [str(file) for file in files if str(file) not in known]
        if missing:
            raise InputError(
                f"{table}: expected a row for each image, got none for {missing[0]} "
                f"({len(missing)} of {len(files)} are missing); add them, or remove the file"
            )
        return [known[str(file)] for file in files]
    flat = sum(len(file.parts) == 1 for file in files)
    if flat == len(files):
        return None
    if flat:
        raise InputError(
            f"{root}: expected images in class folders or directly in it, got both ({flat} of {len(files)} "
            "directly); move one kind away, or name all in a labels.csv (columns file, class_index)"
        )
    classes = sorted(f.name for f in root.iterdir() if f.is_dir() and not is_hidden(f.name))
    if {name.lower() for name in classes} <= _SPLITS:
        raise InputError(f"{root}: expected class folders, got {' and '.join(classes)}; give one of these")
    index = {name: i for i, name in enumerate(classes)}
    return [index[file.parts[0]] for file in files]


def _read_labels(table: Path) -> dict[str, int]:
    try:
        with table.open(encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines, strict=True)
            columns = rows.fieldnames or []
            if not {"file", "class_index"} <= set(columns):
                raise InputError(
                    f"{table}: expected columns file and class_index, got {', '.join(columns) or 'none'}; "
                    "rename them, or remove the file"
                )
            return {row["file"]: _class_index(row["class_index"], row["file"], table) for row in rows}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{table}: expected a table of labels, cannot read it ({in_one_line(error)})"
        ) from error


def _class_index(text: str | None, file: str, table: Path) -> int:
    try:
        return int(text or "")
    except ValueError:
        raise InputError(f"{table}: expected a whole number as class_index of {file}, got {text!r}") from None
