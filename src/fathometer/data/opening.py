"""The front door: which kind of data a name or path means."""

from __future__ import annotations

import os
from pathlib import Path

from fathometer.data.array_files import array_samples
from fathometer.data.cifar import Cifar, is_cifar, is_pickled_cifar, refuse_pickled
from fathometer.data.files import contents_hash
from fathometer.data.image_folder import IMAGE_SUFFIXES, ImageFolder
from fathometer.data.inputs import Inputs
from fathometer.data.noise import Noise, is_noise
from fathometer.data.pictures import require_pictures
from fathometer.data.samples import Samples, refuse_length
from fathometer.data.source import DataSource
from fathometer.data.text import text_blocks
from fathometer.errors import InputError, check_whole

KNOWN_DATA = (
    "a folder of images, CIFAR in its binary version, an .npz or .npy file, "
    "a text file (for tokens), or random (random:1000)"
)

_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z")
_PICKLES = (".pkl", ".pickle", ".pt", ".pth")


def open_data(
    source: str | Path,
    inputs: Inputs,
    *,
    batch_size: int = 32,
    shuffle: bool = True,
    seed: int = 0,
    workers: int = 0,
    strict: bool = False,
    length: int | None = None,
) -> DataSource:
    """Batches for a network that takes `inputs`, from a name or a path.

    Args:
        source: a folder of images, CIFAR in its binary version, an `.npz` or `.npy` file, a text file, or
            `random` (`random:1000` for 1000 samples of noise).
        inputs: what the network takes.
        batch_size: how many samples at a time; the sequence of samples does not depend on it.
        shuffle: an order from the seed, since folders are sorted by class. Noise needs none and gets none.
        seed: of the order, and of the noise.
        workers: processes that read ahead; the sequence of samples does not depend on them. On Linux they
            are forked; elsewhere `inputs` must be picklable.
        strict: raise at the first unreadable image instead of skipping it.
        length: for tokens, how many make a sample, when not as many as `inputs` says.

    Example:
        >>> source = open_data("random:5", Inputs("image", (3, 8, 8)), batch_size=2)
        >>> [list(batch.shape) for batch in source]
        [[2, 3, 8, 8], [2, 3, 8, 8], [1, 3, 8, 8]]
    """
    batch_size = check_whole("batch_size", batch_size, 1)
    workers = check_whole("workers", workers)
    seed = check_whole("seed", seed)
    length = None if length is None else check_whole("length", length, 1)
    noise = is_noise(source)
    samples: Samples
    if noise:
        samples = Noise(str(source), inputs, seed, length)
    else:
        path = _path(source)
        samples = _samples(path, inputs, length)
        samples.description["sha256"] = contents_hash(path)
    return DataSource(
        samples,
        inputs,
        batch_size=batch_size,
        shuffle=shuffle and not noise,
        seed=seed,
        workers=workers,
        strict=strict,
    )


def require_data(source: str | Path) -> None:
    """Refuse a path where there is nothing, before a network is loaded that would tell what it takes."""
    if not is_noise(source):
        _path(source)


def _path(source: str | Path) -> Path:
    path = Path(os.path.expanduser(source))
    if not str(source) or not os.path.exists(path):
        raise InputError(f"{str(source)!r}: no such file or folder; expected {KNOWN_DATA}")
    return path


def _samples(path: Path, inputs: Inputs, length: int | None) -> Samples:
    suffix = path.suffix.lower()
    if suffix in (".npz", ".npy") and path.is_file():
        return array_samples(path, inputs, length)
    if path.is_file() and is_pickled_cifar(path):
        raise refuse_pickled(path)
    if suffix in _ARCHIVES and path.is_file():
        raise InputError(f"{path}: expected {KNOWN_DATA}, got an archive; unpack it first")
    if suffix in _PICKLES and path.is_file():
        raise InputError(f"{path}: expected {KNOWN_DATA}, got what may be pickled, which is never opened")
    if inputs.kind == "tokens" and path.is_file() and suffix not in (".bin", *IMAGE_SUFFIXES):
        return text_blocks(path, inputs, length)
    if inputs.kind != "tokens":
        refuse_length(length)
    if path.is_dir():
        return Cifar(path, inputs) if is_cifar(path) else ImageFolder(path, inputs)
    if suffix == ".bin":
        return Cifar(path, inputs)
    if suffix in IMAGE_SUFFIXES:
        require_pictures(inputs, str(path))
        raise InputError(f"{path}: expected {KNOWN_DATA}, got a single image; give the folder it lies in")
    raise InputError(
        f"{path}: this network takes {_taken(inputs)}; expected {KNOWN_DATA}, "
        f"got a file {f'of kind {suffix}' if suffix else 'without a known ending'}"
    )


def _taken(inputs: Inputs) -> str:
    if inputs.kind == "tokens":
        return "tokens"
    return f"{'images' if inputs.kind == 'image' else 'tensors'} of shape {list(inputs.shape)}"
