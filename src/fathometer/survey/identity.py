"""What a model, its weights and data are, told by their contents and not by where they lie.

The name of a result is a hash of these, so they must be quick to find: before a network is loaded.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from fathometer.data.noise import is_noise
from fathometer.errors import InputError
from fathometer.models.torchvision_facts import default_weights
from fathometer.survey.members import Member
from fathometer.user_code import current_folder_on_path

_READ_WHOLE = 2**28  # bytes; a folder that holds more is known by names and sizes
_PIECE = 2**20


def weights_identity(member: Member) -> dict[str, str]:
    """The contents of every file that the weights come from, or the name that a library has for them."""
    source, _, rest = member.model_source.partition(":")
    found: dict[str, str] = {}
    if source == "onnx" or (source == "hf" and Path(rest).exists()):
        found["model"] = contents_hash(rest)
    elif source not in ("torchvision", "timm", "hf"):
        found["code"] = _code_hash(source)
    if member.weights_is_file:
        return {**found, "file": contents_hash(member.weights_source)}
    name = default_weights(member.model) if member.weights == "default" else None
    return {**found, "name": name or member.weights}


def data_identity(source: str) -> dict[str, str]:
    """The contents of a file or folder; noise is known by its name."""
    return {"name": source} if is_noise(source) else {"contents": contents_hash(source)}


def contents_hash(path: str) -> str:
    """SHA-256 of a file, or of the names and contents of all files in a folder.

    Of a folder that holds more than 256 MB, names and sizes are taken instead of contents.
    """
    try:
        files = sorted(_files(Path(path)))
        return _hash(tuple(files))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def _files(path: Path) -> Iterator[tuple[str, str, int, int]]:
    """Name, path, size and time of change of every file."""
    if path.is_file():
        facts = path.stat()
        yield "", str(path), facts.st_size, facts.st_mtime_ns
        return
    for folder, _, names in os.walk(path, followlinks=True):
        for name in names:
            file = Path(folder) / name
            if name.startswith(".") or not file.is_file():
                continue
            facts = file.stat()
            yield file.relative_to(path).as_posix(), str(file), facts.st_size, facts.st_mtime_ns


@lru_cache(maxsize=4096)
def _hash(files: tuple[tuple[str, str, int, int], ...]) -> str:
    """Kept for files that have not changed since."""
    single = len(files) == 1 and not files[0][0]
    whole = single or sum(size for *_, size, _ in files) <= _READ_WHOLE
    digest = hashlib.sha256()
    for name, path, size, _ in files:
        digest.update(f"{name}\0{size}\0".encode())
        if whole:
            with open(path, "rb") as file:
                while piece := file.read(_PIECE):
                    digest.update(piece)
    return digest.hexdigest()


def _code_hash(module: str) -> str:
    """Of the file of a module of the user's own: other code may make another network."""
    with current_folder_on_path():
        spec = importlib.util.find_spec(module)
    if spec is None or not spec.origin or not Path(spec.origin).is_file():
        return ""
    return contents_hash(spec.origin)
