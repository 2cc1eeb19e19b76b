"""Opens data by name or path: finds out their kind, lists and hashes their files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from fathometer.data.arrays import open_arrays
from fathometer.data.cifar import Cifar, is_cifar
from fathometer.data.hugging_face import (
    DatasetLocation,
    find_location,
    is_on_hub,
    open_location,
    split_source,
)
from fathometer.data.images import IMAGE_SUFFIXES, ImageFolder, require_images
from fathometer.data.noise import Noise
from fathometer.data.source import DataSource, Inputs, Samples, is_hidden
from fathometer.data.text import open_text
from fathometer.errors import InputError, check_whole

KNOWN_DATA = (
    "a folder of images, CIFAR in its binary version, an .npz, .npy, .parquet or .tar file, "
    "a text file (for tokens), a Hugging Face data set (hf:NAME:SPLIT), or random (random:1000)"
)

_NOISE_COUNT = 50_000  # samples of `random`
_READ_COMPLETELY = 2**28  # bytes; a larger folder is hashed by names and sizes, which takes no reading
_CHUNK = 2**20


class File(NamedTuple):
    """One file of a folder.

    Attributes:
        name: its path relative to the folder; empty for a file that was given itself.
        path: its path.
        size: its size in bytes; -1 for a broken link.
        changed: the time of its last change, in nanoseconds.
    """

    name: str
    path: str
    size: int
    changed: int


def open_data(
    source: str | Path | DatasetLocation,
    inputs: Inputs,
    *,
    batch_size: int = 32,
    shuffle: bool = True,
    seed: int = 0,
    workers: int = 0,
    strict: bool = False,
    length: int | None = None,
    keep_bytes: int = 0,
) -> DataSource:
    """Open data by name or path, as batches for a network that takes `inputs`.

    Args:
        source: a folder of images, CIFAR in its binary version, an `.npz` or `.npy` file, a text file, or
            `random` (`random:1000` for 1000 samples of noise); a Hugging Face data set, `hf:ylecun/mnist` or
            `hf:uoft-cs/cifar10:test` on the hub, or a folder of `save_to_disk`; a `.parquet` file, a
            webdataset shard (`.tar`), or a folder of these; or what `require_data` has found of such data.
        inputs: what the network takes.
        batch_size: number of samples in a batch; their sequence does not depend on it.
        shuffle: whether to shuffle by the seed, because folders are sorted by class. Noise is not shuffled.
        seed: seed for the order and for noise.
        workers: number of processes that read ahead; the sequence of samples does not depend on it. On Linux
            they are forked; elsewhere `inputs` must be picklable.
        strict: whether to raise at the first unreadable image instead of skipping it.
        length: for tokens, the number in a sample, if not that of `inputs`.
        keep_bytes: how much memory batches may take that are kept for further passes over the data.

    Example:
        >>> source = open_data("random:5", Inputs("image", (3, 8, 8)), batch_size=2)
        >>> [list(batch.shape) for batch in source]
        [[2, 3, 8, 8], [2, 3, 8, 8], [1, 3, 8, 8]]
    """
    batch_size = check_whole("batch_size", batch_size, 1)
    workers = check_whole("workers", workers)
    seed = check_whole("seed", seed)
    length = None if length is None else check_whole("length", length, 1)
    if length is not None and inputs.kind != "tokens":
        raise InputError(
            f"expected none, because this network takes no tokens, got {length}", parameter="length"
        )
    noise = is_noise(source)
    samples: Samples
    if noise:
        samples = Noise(noise_count(str(source)), inputs, seed, length)
    elif location := _location(source):
        samples = open_location(location, inputs, length)
        if digest := _hash_location(location):
            samples.description["sha256"] = digest
    else:
        assert not isinstance(source, DatasetLocation)
        path = _path(source)
        if path.is_dir() or path.suffix.lower() == ".bin":
            require_images(inputs, path)  # before a large folder is listed
        files = list_files(path)
        samples = _samples(path, [file.name for file in files], inputs, length)
        samples.description["sha256"] = hash_files(files)
    return DataSource(
        samples,
        inputs,
        batch_size=batch_size,
        shuffle=shuffle and not noise,
        seed=seed,
        workers=workers,
        strict=strict,
        keep_bytes=keep_bytes,
    )


def inspect_data(source: str | Path) -> tuple[str | None, int | None]:
    """Return the hash of the content and the number of samples, as far as they are known without a network.

    Noise has no content, that of the hub is unknown, and only a network tells the number of samples in most
    files. The folder is listed once for both.

    Example:
        >>> inspect_data("random:32")
        (None, 32)
    """
    if is_noise(source):
        return None, noise_count(str(source))
    if location := _location(source):
        return _hash_location(location), None
    path = _path(source)
    files = list_files(path)
    images = sum(file.name.lower().endswith(IMAGE_SUFFIXES) for file in files)
    return hash_files(files), images if path.is_dir() and not is_cifar(path) else None


def require_data(source: str | Path) -> DatasetLocation | None:
    """Refuse a path that does not exist, before a network is loaded; return where a data set is."""
    return None if is_noise(source) else _location(source)


def is_noise(source: object) -> bool:
    """Say whether a name means noise: `random` or `random:1000`. A file of that name is `./random`."""
    return isinstance(source, str) and source.partition(":")[0] == "random"


def noise_count(source: str) -> int:
    """Return the number of samples that a name such as `random:1000` asks for."""
    _, colon, text = source.partition(":")
    if not colon:
        return _NOISE_COUNT
    if not (text.isascii() and text.isdigit() and int(text)):
        raise InputError(
            f"{source}: expected the number of samples after the colon, got {text!r}; e.g. random:1000"
        )
    return int(text)


def list_files(path: str | Path) -> tuple[File, ...]:
    """Return a file, or every file below a folder, sorted by name.

    Hidden files are left out. Links are followed, but not in circles. A broken link is listed, so that
    whoever opens it can report it.
    """
    path = Path(path)
    try:
        if path.is_file():
            facts = path.stat()
            return (File("", str(path), facts.st_size, facts.st_mtime_ns),)
        return tuple(sorted(_below(path, PurePosixPath(), frozenset())))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def contents_hash(path: str | Path) -> str:
    """Return the SHA-256 of a file, or of the names, sizes and contents of all files in a folder.

    The location and the name of the path are not included. Of a folder that holds more than 256 MB the
    names and sizes are hashed, but not the contents; likewise of files that may not be read.
    """
    return hash_files(list_files(path))


def hash_files(files: Sequence[File]) -> str:
    """Return the hash of files that were listed; see `contents_hash`."""
    try:
        return _hash(tuple(files))
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror or error})") from error


def _location(source: str | Path | DatasetLocation) -> DatasetLocation | None:
    """Return where a Hugging Face data set is; None for other data, which must exist."""
    if isinstance(source, DatasetLocation):
        return source
    if not is_on_hub(source):
        _path(split_source(source)[1])
    return find_location(source)


def _hash_location(location: DatasetLocation) -> str | None:
    if location.path is None:
        return None
    files = list_files(location.path)
    return hash_files([f for f in files if location.files is None or f.name in location.files])


def _path(source: str | Path) -> Path:
    path = Path(os.path.expanduser(source))
    if not str(source) or not os.path.exists(path):
        raise InputError(f"{str(source)!r}: no such file or folder; expected {KNOWN_DATA}")
    return path


def _samples(path: Path, names: Sequence[str], inputs: Inputs, length: int | None) -> Samples:
    suffix = path.suffix.lower()
    if path.is_dir():
        return Cifar(path, inputs) if is_cifar(path) else ImageFolder(path, inputs, names)
    if suffix in (".npz", ".npy"):
        return open_arrays(path, inputs, length)
    if suffix == ".bin":
        return Cifar(path, inputs)
    if inputs.kind == "tokens":
        return open_text(path, inputs, length)
    taken = f"{'images' if inputs.kind == 'image' else 'tensors'} of shape {list(inputs.shape)}"
    given = f"of kind {suffix}" if suffix else "without a known ending"
    raise InputError(f"{path}: this network takes {taken}; expected {KNOWN_DATA}, got a file {given}")


def _below(root: Path, folder: PurePosixPath, above: frozenset[str]) -> Iterator[File]:
    here = os.path.realpath(root / folder)
    if here in above:
        return
    with os.scandir(root / folder) as entries:
        for entry in entries:
            if is_hidden(entry.name):
                continue
            if entry.is_dir():
                yield from _below(root, folder / entry.name, above | {here})
            elif entry.is_file():
                facts = entry.stat()
                yield File(str(folder / entry.name), entry.path, facts.st_size, facts.st_mtime_ns)
            elif entry.is_symlink():
                yield File(str(folder / entry.name), entry.path, -1, 0)


@lru_cache(maxsize=4096)  # files that have not changed since are not read again
def _hash(files: tuple[File, ...]) -> str:
    single = len(files) == 1 and not files[0].name
    completely = single or sum(file.size for file in files) <= _READ_COMPLETELY
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{file.size}\0".encode("utf-8", "surrogateescape"))
        if completely and file.size >= 0:
            try:
                with open(file.path, "rb") as opened:
                    while chunk := opened.read(_CHUNK):
                        digest.update(chunk)
            except PermissionError:
                if single:
                    raise
    return digest.hexdigest()
