"""Arrays in `.npz` and `.npy` files, the first axis over samples. Nothing is unpickled."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from numpy.lib.format import MAGIC_PREFIX

from fathometer.data.inputs import Inputs
from fathometer.data.pictures import Pixels, from_pixels, require_pictures
from fathometer.data.samples import (
    Sample,
    Samples,
    Unreadable,
    brief,
    fault_of_shape,
    own_name,
    refuse_length,
)
from fathometer.data.tokens import Blocks, block_length, check_ids
from fathometer.errors import InputError

SAMPLE_KEYS = ("x", "images", "data", "arr_0")
LABEL_KEYS = ("y", "labels")

_CHANNELS_LAST = (1, 3, 4)
_CHANNELS_FIRST = (1, 3)  # a first axis of 4 is more often a height

_Array: TypeAlias = npt.NDArray[Any]


def array_samples(path: Path, inputs: Inputs, length: int | None = None) -> Samples:
    """What the array holds, by its dtype and the network.

    For tokens: ids `[samples, length]`, of which the first `length` are taken, or one stream `[tokens]`.
    Otherwise bytes are images, `[samples, height, width]` with channels last or first or without, and
    floats are passed on as they are.
    """
    values, labels = load_arrays(path)
    if values.ndim == 0 or values.size == 0:
        raise InputError(f"{path}: expected samples along the first axis, got shape {list(values.shape)}")
    description: dict[str, object] = {"kind": "array", "name": own_name(path)}
    if inputs.kind == "tokens":
        return _ids(values, inputs, length, path, description)
    refuse_length(length)
    numbers = None if labels is None else _as_labels(labels, len(values), path)
    description |= {
        "labels": numbers is not None,
        "dtype": str(values.dtype),
        "shape": list(values.shape[1:]),
    }
    if values.dtype == np.uint8:
        require_pictures(inputs, str(path))
        return _PixelArray(_channels_last(values, inputs, path), numbers, inputs, description)
    if values.dtype.kind == "f":
        fault = fault_of_shape(values.shape[1:], inputs)
        if fault:
            raise InputError(f"{path}: {fault}")
        return _FloatArray(values, numbers, description)
    raise InputError(
        f"{path}: expected floats or images in uint8, got {values.dtype}; "
        "convert, e.g. with x.astype('float32')"
    )


class _FloatArray(Samples):
    all_readable = True

    def __init__(self, values: _Array, labels: _Array | None, description: dict[str, object]) -> None:
        self._values, self._labels, self.description = values, labels, description

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> Sample:
        with np.errstate(over="ignore"):
            values = np.array(self._values[index], np.float32)
        return Sample(f"row {index}", torch.from_numpy(values), _label(self._labels, index))


class _PixelArray(Samples):
    def __init__(
        self, pixels: Pixels, labels: _Array | None, inputs: Inputs, description: dict[str, object]
    ) -> None:
        self._pixels, self._labels, self._inputs, self.description = pixels, labels, inputs, description

    def __len__(self) -> int:
        return len(self._pixels)

    def __getitem__(self, index: int) -> Sample | Unreadable:
        label = _label(self._labels, index)
        return from_pixels(self._pixels[index], f"row {index}", label, self._inputs)


def _ids(
    values: _Array, inputs: Inputs, length: int | None, path: Path, description: dict[str, object]
) -> Blocks:
    if values.dtype.kind not in "iu" or values.ndim > 2:
        raise InputError(
            f"{path}: this network takes tokens; expected whole numbers of shape [samples, length] or "
            f"[tokens], got {values.dtype} of shape {list(values.shape)}"
        )
    check_ids(values, inputs, str(path))
    if values.ndim == 1:
        if len(values) < 2:
            raise InputError(f"{path}: expected at least 2 tokens, got {len(values)}")
        return Blocks(values, block_length(inputs, length), description)
    width = values.shape[1]
    length = width if length is None else block_length(inputs, length)
    if length > width:
        raise InputError(f"{path}: expected rows of at least {length} tokens, got {width}; lower length")
    return Blocks(values[:, :length].reshape(-1), length, description)


def load_arrays(path: Path) -> tuple[_Array, _Array | None]:
    """Samples and, if there are any, labels."""
    try:
        with path.open("rb") as file:  # NumPy leaves a broken archive open
            if file.read(len(MAGIC_PREFIX)) == MAGIC_PREFIX:
                return np.load(path, mmap_mode="r", allow_pickle=False), None
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                key, label_key = _keys(archive.files, path)
                _refuse_bomb(archive)
                values, labels = archive[key], archive[label_key] if label_key else None
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(
            f"{path}: larger than the memory; save it as .npy, which is read piecewise"
        ) from error
    except Exception as error:  # broken files make NumPy and zipfile raise nearly anything
        pickled = "pickle" in str(error) or "Object arrays" in str(error)
        reason = "no arrays, or Python objects, which are never opened" if pickled else brief(error)
        raise InputError(
            f"{path}: expected arrays of numbers as numpy.savez or numpy.save write them, "
            f"cannot read it ({reason})"
        ) from error
    if not isinstance(values, np.ndarray) or not isinstance(labels, np.ndarray | None):
        raise InputError(f"{path}: expected arrays under {key!r}, got a file that is none; use numpy.savez")
    return values, labels


def _refuse_bomb(archive: Any) -> None:
    """Small files can unpack to more than there is memory."""
    size = sum(member.file_size for member in archive.zip.infolist())
    if hasattr(os, "sysconf") and size > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise MemoryError


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
            f"{list(labels.shape)}; rename the array if these are no class labels"
        )
    return labels.reshape(-1)


def _label(labels: _Array | None, index: int) -> int | None:
    return None if labels is None else int(labels[index])


def _channels_last(pixels: Pixels, inputs: Inputs, path: Path) -> Pixels:
    """`[samples, height, width]` or `[samples, height, width, channels]`, whichever way they came."""
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
        f"got shape {list(pixels.shape)}; convert to float32 if these are no images"
    )
