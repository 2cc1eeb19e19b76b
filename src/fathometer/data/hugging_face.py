"""Data sets of Hugging Face: from the hub, folders of `save_to_disk`, parquet files, webdataset shards.

The library `datasets` reads them; it copies parquet files and shards to its cache, to read rows in any order.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from glob import escape
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies

import numpy as np
import numpy.typing as npt

from fathometer.data.arrays import open_ids
from fathometer.data.images import IMAGE_SUFFIXES, from_file, require_images
from fathometer.data.source import Inputs, Sample, Samples, Unreadable, display_name, is_hidden
from fathometer.data.text import Tokens, tokens_of
from fathometer.data.texts import IDS, MASK, text_column
from fathometer.errors import FathometerError, InputError, did_you_mean, import_extra

_BUILDERS = {".parquet": "parquet", ".tar": "webdataset"}
_SPLITS = ("test", "validation", "train")  # in the order of preference
_IMAGES = ("image", "img", "jpg", "jpeg", "png", "webp")
_BYTES = ("binary", "large_binary", "")  # the last is a struct of bytes and path
_LABELS = ("label", "labels", "fine_label", "cls")
_SOURCE = re.compile(r"(hf:)(.+?)(:[\w.-]+)?", re.DOTALL)


class DatasetLocation(NamedTuple):
    """Where a split of a data set is.

    Attributes:
        name: what messages and results call the data set.
        split: its name; None for the only one, or on the hub for the preferred one.
        path: a file or folder; None on the hub.
        files: the files of the split, relative to the folder; None for all.
    """

    name: str
    split: str | None
    path: Path | None = None
    files: frozenset[str] | None = None


def split_source(source: str | Path) -> tuple[str, str, str]:
    """Return the prefix of a source, its name or path, and its split.

    Example:
        >>> split_source("hf:uoft-cs/cifar10:test"), split_source("photos.parquet")
        (('hf:', 'uoft-cs/cifar10', ':test'), ('', 'photos.parquet', ''))
    """
    found = _SOURCE.fullmatch(str(source))
    return (found[1], found[2], found[3] or "") if found else ("", str(source), "")


def is_on_hub(source: str | Path, folder: str | Path = ".") -> bool:
    """Say whether a source names data on the hub: not a path, and nothing that exists in the folder."""
    prefix, name, _ = split_source(source)
    is_path = name[:1] in "./~" or os.path.isabs(name) or os.path.exists(Path(folder) / name)
    return bool(prefix) and not is_path


def find_location(source: str | Path) -> DatasetLocation | None:
    """Return where a data set of Hugging Face is; None for files and folders of another kind."""
    prefix, name, colon = split_source(source)
    split, path = colon[1:] or None, Path(name).expanduser()
    with _as_input_error(source):
        if not prefix and not _is_known(path):
            return None
        datasets = _import_datasets()
        if is_on_hub(source):
            return DatasetLocation(name, split)
        title = display_name(path)
        if path.is_file() and path.suffix.lower() not in _BUILDERS:
            raise InputError(f"{source}: expected a folder, or a file of kind .parquet or .tar")
        if path.is_file() or (path / "state.json").is_file():
            if split is not None:
                raise InputError(f"{source}: expected no split, because {name} has one only, got {split}")
            return DatasetLocation(title, None, path)
        if (path / "dataset_dict.json").is_file():
            split = _choose(datasets.load_from_disk(str(path)), split, name)
            return DatasetLocation(title, split, path / split)
        files = datasets.load_dataset_builder(str(path)).config.data_files
        split, root = _choose(files, split, name), path.resolve()
        return DatasetLocation(
            title, split, path, frozenset(Path(f).relative_to(root).as_posix() for f in files[split])
        )


def open_location(location: DatasetLocation, inputs: Inputs, length: int | None) -> Samples:
    """Open a data set as images, or as tokens if the network takes these."""
    if inputs.kind != "tokens":
        require_images(inputs, Path(location.name))
    with _as_input_error(location.name):
        data = _load(location)
    facts: dict[str, object] = {"kind": "dataset", "name": location.name, "split": location.split or ""}
    if location.path is None:
        facts |= {"split": str(data.split), "fingerprint": data._fingerprint}
    return (
        DatasetImages(data, inputs, facts)
        if inputs.kind != "tokens"
        else _tokens(data, inputs, length, facts)
    )


class DatasetImages(Samples):
    """The images of a data set, each decoded when it is asked for."""

    def __init__(self, data: Any, inputs: Inputs, facts: Mapping[str, object]) -> None:
        if not hasattr(data, "__len__"):
            raise InputError("expected images in any order, got a stream; load it without streaming")
        image = _import_datasets().Image
        typed = [key for key, feature in data.features.items() if isinstance(feature, image)]
        known = [key for key in data.features if key in _IMAGES and _dtype(data, key) in _BYTES]
        self._column = _only(typed or known, f"images ({', '.join(_IMAGES)})", data, facts)
        rows = data.with_format(None).select_columns([self._column])
        self._rows, self._inputs = rows.cast_column(self._column, image(decode=False)), inputs
        self.labels, self.classes = _labels(data)
        self.description = {**facts, "labels": self.labels is not None, "column": self._column}

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> Sample | Unreadable:
        found = self._rows[index][self._column] or {}
        content, path = found.get("bytes"), found.get("path")
        file = Path(path) if path and content is None else BytesIO(content or b"")
        return from_file(
            file, f"row {index}", None if self.labels is None else int(self.labels[index]), self._inputs
        )


def _tokens(data: Any, inputs: Inputs, length: int | None, facts: dict[str, object]) -> Tokens:
    """Join texts by blank lines; of ids, leave out the padding, and join rows of several lengths."""
    name = str(facts["name"])
    if IDS not in data.features:
        strings = [key for key in data.features if _dtype(data, key) in ("string", "large_string")]
        column = text_column(strings) or _only([], f"token ids ({IDS}) or texts (text, content)", data, facts)
        text = "\n\n".join(row or "" for row in data.with_format(None)[column])
        return tokens_of(text, inputs, length, name, {**facts, "column": column})
    rows = data.with_format("numpy").select_columns([key for key in (IDS, MASK) if key in data.features])
    ids = [row[IDS][row[MASK] != 0] if MASK in row else row[IDS] for row in rows]
    joined = np.stack(ids) if len({len(row) for row in ids}) == 1 else np.concatenate(ids)
    return open_ids(joined, inputs, length, name, {**facts, "column": IDS})


def _labels(data: Any) -> tuple[npt.NDArray[Any] | None, tuple[str, ...] | None]:
    """Return labels and names of classes; where labels are secret, the hub has −1, and there are none."""
    whole = [key for key in data.features if _dtype(data, key).startswith(("int", "uint"))]
    names = {key: tuple(data.features[key].names) for key in whole if hasattr(data.features[key], "names")}
    found = [key for key in _LABELS if key in whole] or (list(names) if len(names) == 1 else [])
    labels = data.with_format("numpy")[found[0]][:] if found else np.array([-1])
    is_complete = labels.dtype.kind in "iu" and labels.min() >= 0
    return (labels, names.get(found[0])) if is_complete else (None, None)


@contextmanager
def hub_or_cache() -> Iterator[None]:
    """Use only what the Hugging Face hub has left in the cache if there is no network.

    Otherwise the hub would try again for half a minute.
    """
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or not _is_reachable(constants.ENDPOINT)
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _is_reachable(address: str) -> bool:
    if getproxies():
        return True  # the proxy resolves names
    try:
        socket.getaddrinfo(urlsplit(address).hostname, 443)
    except OSError:
        return False
    return True


def _import_datasets() -> Any:
    return import_extra("datasets", extra="datasets", purpose="reading Hugging Face data sets")


def _is_known(path: Path) -> bool:
    """Say whether a file or folder is a data set: saved by the library, or parquet files or shards alone."""
    if not path.is_dir():
        return path.suffix.lower() in _BUILDERS
    names = [name for name in os.listdir(path) if not is_hidden(name)]
    if "dataset_dict.json" in names or {"dataset_info.json", "state.json"} <= set(names):
        return True
    has_images = any(name.lower().endswith(IMAGE_SUFFIXES) or (path / name).is_dir() for name in names)
    return any(name.lower().endswith(tuple(_BUILDERS)) for name in names) and not has_images


def _choose(splits: Mapping[str, Any], wanted: str | None, name: str) -> str:
    """Return the split that is wanted, the only one, or the preferred one."""
    known = list(map(str, splits))
    found = (
        [wanted] if wanted else known if len(known) == 1 else [split for split in _SPLITS if split in known]
    )
    if found and found[0] in known:
        return found[0]
    hint = did_you_mean(wanted or "", known) or f"give e.g. hf:{name}:{known[0]}"
    raise InputError(f"{name}: expected one of the splits {', '.join(known)}, got {wanted or 'none'}; {hint}")


def _load(location: DatasetLocation) -> Any:
    datasets, path = _import_datasets(), location.path
    if path is None:
        parts = location.name.split("/", 2)  # owner, name, configuration
        with hub_or_cache():
            return load_split("/".join(parts[:2]), *parts[2:], split=location.split)
    if path.is_file():
        return datasets.load_dataset(
            _BUILDERS[path.suffix.lower()], data_files=escape(str(path)), split="train"
        )
    if location.files is None:
        return datasets.load_from_disk(str(path))
    files = {location.split: [escape(name) for name in sorted(location.files)]}
    return datasets.load_dataset(str(path), data_files=files, split=location.split)


def load_split(path: str, *configuration: str, split: str | None) -> Any:
    """Load a split from the hub without the files of the others, of which the library would prepare all.

    Each split has a cache of its own, since in that of the library it would be taken for the whole data set.
    """
    datasets = _import_datasets()
    open_builder = partial(datasets.load_dataset_builder, path, *configuration)
    caches = Path(datasets.config.HF_DATASETS_CACHE, "fathometer")
    try:
        builder = open_builder()
    except Exception:  # without a network, and not in the cache of the library
        for each in (split,) if split else _SPLITS:
            with suppress(Exception):
                return open_builder(cache_dir=str(caches / each)).as_dataset(each)
        raise
    name, files = "/".join((path, *configuration)), builder.config.data_files
    if not files or os.path.isdir(builder.cache_dir):  # prepared before
        builder.download_and_prepare()
        splits = builder.as_dataset()
        return splits[_choose(splits, split, name)]
    split = _choose(files, split, name)
    builder = open_builder(cache_dir=str(caches / split))
    builder.config.data_files = type(files)({split: files[split]})
    builder.info.size_in_bytes = None  # that of all splits
    builder.download_and_prepare(verification_mode="no_checks")
    return builder.as_dataset(split)


@contextmanager
def _as_input_error(name: object) -> Iterator[None]:
    """Turn errors of the library into one line, for example without a network."""
    try:
        yield
    except FathometerError:
        raise
    except Exception as error:  # it raises nearly anything
        reason = " ".join(str(error).strip().splitlines()[:2])  # the second may name configurations
        raise InputError(
            f"{name}: cannot be opened as a data set ({reason or type(error).__name__})"
        ) from error


def _dtype(data: Any, column: str) -> str:
    return str(getattr(data.features[column], "dtype", ""))


def _only(found: Sequence[str], what: str, data: Any, facts: Mapping[str, object]) -> str:
    if len(found) == 1:
        return found[0]
    raise InputError(
        f"{facts['name']}: expected one column of {what}, got {' and '.join(found) or 'none'} among "
        f"{', '.join(data.features)}; rename or select one, and save the data set with save_to_disk"
    )
