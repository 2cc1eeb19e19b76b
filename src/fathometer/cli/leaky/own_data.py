"""Reads a user's own task from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from fathometer.errors import InputError
from fathometer.leaky import Task, own_task

_NAMES = ("x", "y", "x_test", "y_test")


def read_own_task(path: Path) -> Task:
    """Read x, y and, if present, x_test and y_test of an .npz; nothing in it is executed."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: np.asarray(file[name]) for name in _NAMES if name in file.files}
            names = file.files
    except OSError as error:
        raise InputError(f"--task {path}: cannot be read ({error.strerror or error})") from error
    except Exception as error:  # NumPy and zipfile raise nearly anything
        raise InputError(f"--task {path}: expected an .npz with arrays of numbers x and y") from error
    if not {"x", "y"} <= found.keys():
        raise InputError(f"--task {path}: expected arrays x and y, got {', '.join(names) or 'none'}")
    for name, array in found.items():
        if array.dtype.kind not in "biuf":
            raise InputError(f"--task {path}: expected real numbers, got {array.dtype} in {name}")
    tensors = {name: torch.from_numpy(array.astype(np.float64)) for name, array in found.items()}
    if len(found["x"].shape) == 2 and len(found["x"]) < 2:
        raise InputError(f"--task {path}: expected at least 2 samples, got {len(found['x'])}")
    try:
        return own_task(tensors["x"], tensors["y"], tensors.get("x_test"), tensors.get("y_test"))
    except InputError as error:
        raise InputError(f"--task {path}: {error}") from error
