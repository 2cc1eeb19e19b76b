"""Arrays in `.npz` and `.npy` files, with samples along the first axis. Nothing is unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from numpy.lib.format import MAGIC_PREFIX

from fathometer.data.images import Pixels, from_pixels, require_images
from fathometer.data.source import Inputs, Sample, Samples, Unreadable, display_name
from fathometer.data.text import Tokens, check_ids
from fathometer.errors import InputError, first_line

SAMPLE_KEYS = ("x", "images", "data", "arr_0")
LABEL_KEYS = ("y", "labels")

_CHANNELS_LAST = (1, 3, 4)
_CHANNELS_FIRST = (1, 3)  # a first axis of 4 is more often a height

_Array: TypeAlias = npt.NDArray[Any]


class Arrays(Samples):
    """Images from bytes, or floats as they are."""

    def __init__(
        self, values: _Array, labels: _Array | None, inputs: Inputs, description: dict[str, object]
    ) -> None:
        self._values, self.labels, self._inputs, self.description = values, labels, inputs, description

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> Sample | Unreadable:
        name = f"row {index}"
        label = None if self.labels is None else int(self.labels[index])
        if self._values.dtype == np.uint8:
            return from_pixels(self._values[index], name, label, self._inputs)
        with np.errstate(over="ignore"):
            return Sample(name, torch.from_numpy(np.array(self._values[index], np.float32)), label)


def open_arrays(path: Path, inputs: Inputs, length: int | None) -> Arrays | Tokens:
    """Read samples according to their dtype and the network.

    For tokens: ids `[samples, length]`, of which the first `length` are used, or one stream `[tokens]`.
    Otherwise bytes are images, `[samples, height, width]` with channels last, first or without; floats are
    passed on as they are.
    """
    values, labels = load_arrays(path)
    if values.ndim == 0 or values.size == 0:
        raise InputError(f"{path}: expected samples along the first axis, got shape {list(values.shape)}")
    description: dict[str, object] = {"kind": "array", "name": display_name(path)}
    if inputs.kind == "tokens":
        return open_ids(values, inputs, length, path, description)
    labels = None if labels is None else _as_labels(labels, len(values), path)
    description |= {
        "labels": labels is not None,
        "dtype": str(values.dtype),
        "shape": list(values.shape[1:]),
    }
    if values.dtype == np.uint8:
        require_images(inputs, path)
        values = _channels_last(values, inputs, path)
    elif values.dtype.kind == "f":
        mismatch = inputs.mismatch(values.shape[1:])
        if mismatch:
            raise InputError(f"{path}: {mismatch}")
    else:
        raise InputError(
            f"{path}: expected floats or images in uint8, got {values.dtype}; "
            "convert, e.g. with x.astype('float32')"
        )
    return Arrays(values, labels, inputs, description)


def load_arrays(path: Path) -> tuple[_Array, _Array | None]:
    """Return the samples and, if there are any, the labels of a file."""
    try:
        with path.open("rb") as file:  # NumPy leaves a broken archive open
            if file.read(len(MAGIC_PREFIX)) == MAGIC_PREFIX:
                return np.load(path, mmap_mode="r", allow_pickle=False), None
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                key, label_key = _keys(archive.files, path)
                values = np.asarray(archive[key])
                labels = np.asarray(archive[label_key]) if label_key else None
    except InputError:
        raise
    except Exception as error:  # broken files make NumPy and zipfile raise nearly anything
        pickled = "pickle" in str(error) or "Object arrays" in str(error)
        reason = "no arrays, or Python objects, which are never opened" if pickled else first_line(error)
        raise InputError(
            f"{path}: expected arrays of numbers as numpy.savez or numpy.save write them, "
            f"cannot read it ({reason})"
        ) from error
    return values, labels


def open_ids(
    values: _Array, inputs: Inputs, length: int | None, path: Path | str, description: dict[str, object]
) -> Tokens:
    """Check token ids, `[samples, length]` or one stream `[tokens]`, and return them as samples."""
    if values.dtype.kind not in "iu" or values.ndim > 2:
        raise InputError(
            f"{path}: this network takes tokens; expected whole numbers of shape [samples, length] or "
            f"[tokens], got {values.dtype} of shape {list(values.shape)}"
        )
    check_ids(values, inputs, path)
    if values.ndim == 1:
        if len(values) < 2:
            raise InputError(f"{path}: expected at least 2 tokens, got {len(values)}")
        return Tokens(values, inputs.check_length(length), description)
    width = values.shape[1]
    length = width if length is None else inputs.check_length(length)
    if length > width:
        raise InputError(f"{path}: expected rows of at least {length} tokens, got {width}; lower length")
    return Tokens(values[:, :length].reshape(-1), length, description, stride=width)


def _keys(found: list[str], path: Path) -> tuple[str, str | None]:
    label = next((key for key in LABEL_KEYS if key in found), None)
    others = [key for key in found if key != label]
    key = next((key for key in SAMPLE_KEYS if key in found), others[0] if len(others) == 1 else None)
    if key is None:
        raise InputError(
            f"{path}: expected an array named {', '.join(SAMPLE_KEYS)}, got {', '.join(found) or 'none'}; "
            "save it as numpy.savez(file, x=..., y=...)"
        )
    return key, label


def _as_labels(labels: _Array, count: int, path: Path) -> _Array:
    if labels.dtype.kind not in "iub" or labels.shape not in ((count,), (count, 1)):
        raise InputError(
            f"{path}: expected {count} whole numbers as labels, got {labels.dtype} of shape "
            f"{list(labels.shape)}; rename the array if these are not class labels"
        )
    return labels.reshape(-1)


def _channels_last(pixels: Pixels, inputs: Inputs, path: Path) -> Pixels:
    """Return `[samples, height, width]` or `[samples, height, width, channels]`."""
    shape = pixels.shape[1:]
    if len(shape) == 2:
        return pixels
    last = len(shape) == 3 and shape[-1] in _CHANNELS_LAST
    first = len(shape) == 3 and shape[0] in _CHANNELS_FIRST
    if first and (not last or shape == inputs.shape):
        return np.moveaxis(pixels, 1, -1)
    if last:
        return pixels
    raise InputError(
        f"{path}: expected images [samples, height, width] with channels last (1, 3, 4) or second (1, 3), "
        f"got shape {list(pixels.shape)}; convert to float32 if these are not images"
    )
