"""What a network takes in, and batches of it in an order that depends only on the seed."""

from __future__ import annotations

import math
import re
import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.data import DataLoader, Dataset

from fathometer.errors import FathometerError, InputError, first_line

if TYPE_CHECKING:
    from PIL.Image import Image

InputKind: TypeAlias = Literal["image", "tokens", "tensor"]

Batch: TypeAlias = "Tensor | tuple[Tensor, Tensor] | dict[str, Tensor]"
"""Samples `[b, ...]`; with labels `[b]`; or `input_ids` and `attention_mask`, both `[b, t]`."""


@dataclass(frozen=True)
class Inputs:
    """Describes one sample of a network's input, and how to make it from an image or a text.

    Attributes:
        kind: `image` (a float tensor `[channels, height, width]`), `tokens` (integers `[length]`), or
            `tensor` (any other float tensor).
        shape: shape of one sample, without the batch axis.
        vocabulary: for tokens, the number of different ones.
        preprocess: for images, a function from an RGB image to a tensor of `shape`.
        tokenize: for tokens, a function from a text to its tokens.
        positions: for tokens, the largest number that a sample may have.
        flattens: for tensors, whether the network flattens its input, so that samples of any shape with as
            many entries will do.
        size_assumed: for images, whether height and width are a guess, because the network and its
            preprocessing take several sizes. Noise is then made with a warning.
    """

    kind: InputKind
    shape: tuple[int, ...]
    vocabulary: int | None = None
    preprocess: Callable[[Image], Tensor] | None = None
    tokenize: Callable[[str], list[int]] | None = None
    positions: int | None = None
    flattens: bool = False
    size_assumed: bool = False

    @property
    def preprocess_name(self) -> str:
        """The preprocessing as text that is the same in every process, for the provenance.

        Example:
            >>> Inputs("image", (3, 8, 8), preprocess=abs).preprocess_name
            'builtins.abs'
        """
        if self.preprocess is None:
            return repr(self.kind)
        name = getattr(self.preprocess, "__qualname__", None)
        if name is not None:
            return f"{self.preprocess.__module__}.{name}"
        return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(self.preprocess))

    def mismatch(self, shape: tuple[int, ...]) -> str | None:
        """Say what is wrong with a float sample of this shape, or return none if it fits.

        A tensor must have the network's shape; an image its number of axes and channels, because many
        networks take images of any size.
        """
        if self.flattens:
            fits, expected = math.prod(shape) == math.prod(self.shape), f"{math.prod(self.shape)} entries"
        elif self.kind == "tensor":
            fits, expected = shape == self.shape, str(list(self.shape))
        else:
            fits = len(shape) == len(self.shape) and shape[:1] == self.shape[:1]
            expected = f"images [{self.shape[0]}, height, width]"
        if fits:
            return None
        channels_last = len(shape) == 3 and shape[-1:] == self.shape[:1]
        hint = "; move the channels to the front" if channels_last else ""
        return f"expected {expected} for this network, got {list(shape)}{hint}"

    def check_length(self, length: int | None) -> int:
        """Return the number of tokens in a sample: `length`, or what the network prefers."""
        found = length if length is not None else next(iter(self.shape), 0)
        if found < 1:
            raise InputError(f"expected at least one token, got {found}; give e.g. 128", parameter="length")
        if self.positions is not None and found > self.positions:
            raise InputError(
                f"this network has {self.positions} positions, got {found}; give fewer", parameter="length"
            )
        return found


class Sample(NamedTuple):
    """One sample; `mask` says which of its tokens count."""

    name: str
    values: Tensor
    label: int | None = None
    mask: Tensor | None = None


class Unreadable(NamedTuple):
    """A sample that could not be read, and why. It is not an error, because most data sets have some."""

    name: str
    reason: str


class Samples(Dataset[Any]):
    """A data set of numbered samples; the same number gives the same sample in every process.

    Attributes:
        description: what the data are, as JSON and without absolute paths: at least `kind` and `name`.
        labels: the label of each sample; None if there are none.
        classes: the names of the classes that labels number; None if there are no names.
        labels_are_outputs: whether labels are indices of the network's outputs, although they have names.
    """

    description: dict[str, object]
    labels: Sequence[int] | npt.NDArray[np.integer[Any]] | None = None
    classes: tuple[str, ...] | None = None
    labels_are_outputs: bool = False

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, index: int) -> Sample | Unreadable: ...


class DataSource:
    """Batches of a network's input, the same in every pass.

    A batch is a tensor `[b, ...]`, a pair of it and labels `[b]`, or for tokens a dictionary of `input_ids`
    and `attention_mask`, both `[b, t]`. It is smaller than `batch_size` where samples were unreadable.
    The sequence of samples depends neither on `batch_size` nor on `workers`. The first batches, as many as
    fit into `keep_bytes`, are kept in memory, and later passes do not read them again.

    Attributes:
        description: what the data are, as JSON: `kind`, `name`, `count`, `labels`, `shuffle`, `seed` and
            more. Files and folders also have `sha256`, a hash of their content (`contents_hash` in
            `fathometer.data.opening` says what it covers); data are the same if `name`, `sha256` and `count`
            agree. Noise has none: it follows from its seed and shape.
        classes: the names of the classes that labels number: class folders, `wnid` of a `labels.csv`, or
            those of CIFAR. None if labels have no names: they are then the indices of the network's outputs.
        labels_are_outputs: whether labels are such indices although they have names, as in a `labels.csv`; a
            name is "" where no label has the index.
    """

    def __init__(
        self,
        samples: Samples,
        inputs: Inputs,
        *,
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int = 0,
        workers: int = 0,
        strict: bool = False,
        keep_bytes: int = 0,
    ) -> None:
        count = len(samples)
        self.description: dict[str, object] = {
            **samples.description,
            "count": count,
            "shuffle": shuffle,
            "seed": seed,
        }
        self.classes = samples.classes
        self.labels_are_outputs = samples.labels_are_outputs
        self._samples, self._inputs, self._strict, self._seed = samples, inputs, strict, seed
        self._batch_size, self._workers = batch_size, min(workers, -(-count // batch_size))
        self._order: Sequence[int] = range(count)
        if shuffle:
            self._order = np.random.default_rng(seed).permutation(count).tolist()
        self._skipped: dict[str, None] = {}
        self._is_part = False
        self._kept: list[_Collated] = []
        self._room = keep_bytes

    @property
    def skipped(self) -> list[str]:
        """Names of the samples that could not be read in the last pass, in the order of reading."""
        return list(self._skipped)

    def by_label(self) -> list[DataSource]:
        """Return a source for the samples of each label, in the order of before; none without labels.

        `skipped` then has the unreadable samples of all of them.
        """
        labels = self._samples.labels
        if labels is None:
            return []
        found: dict[int, list[int]] = {}
        for index in self._order:
            found.setdefault(int(labels[index]), []).append(index)
        self._skipped = {}
        parts = []
        for _, order in sorted(found.items()):
            part = copy(self)  # which shares the unreadable samples
            part._order, part._is_part, part._kept, part._room = order, True, [], 0
            parts.append(part)
        return parts

    def __len__(self) -> int:
        """Return the number of samples, including the unreadable ones."""
        return len(self._samples)

    def __iter__(self) -> Iterator[Batch]:
        first: _Collated | None = None
        unreadable: list[Unreadable] = []
        if not self._is_part:
            self._skipped = {}
        for collated in self._collated():
            self._skip(collated.unreadable)
            unreadable += collated.unreadable
            if collated.fault:
                raise InputError(collated.fault)
            if collated.batch is None:
                continue
            first = first or collated
            if collated.shape != first.shape:
                raise InputError(_differing(collated.name, collated.shape, first.name, first.shape))
            yield collated.batch
        if first is None and unreadable and not self._is_part:  # the other labels may have some
            name, reason = unreadable[0]
            raise InputError(
                f"{self.description['name']}: expected at least one readable image, got none of {len(self)}; "
                f"the first: {name} ({reason})"
            )

    def _collated(self) -> Iterator[_Collated]:
        """Yield the batches that an earlier pass has kept, and read the others."""
        kept = self._kept.copy()
        yield from map(_copied, kept)
        order = self._order[len(kept) * self._batch_size :]
        if not order:
            return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # more workers than cores, a fork beside threads
                loader = DataLoader(
                    self._samples,
                    batch_size=self._batch_size,
                    sampler=order,
                    num_workers=self._workers,
                    collate_fn=partial(_collate, self._inputs),
                    generator=torch.Generator().manual_seed(self._seed),  # leaves the global one alone
                    # With fork a preprocessing need not be picklable.
                    multiprocessing_context="fork" if self._workers and sys.platform == "linux" else None,
                )
                batches = iter(loader)
            for position, collated in enumerate(batches, len(kept)):
                yield self._keep(collated, position)
        except (RuntimeError, OSError) as error:
            if not self._workers:
                raise
            raise FathometerError(f"a worker stopped ({first_line(error)}); try workers=0") from error

    def _keep(self, collated: _Collated, position: int) -> _Collated:
        """Keep a batch for later passes while there is room, and return one that the network may change."""
        size = sum(tensor.nbytes for tensor in tree_leaves(collated.batch) if tensor is not None)
        if position != len(self._kept) or size > self._room:
            return collated
        self._room -= size
        self._kept.append(collated)
        return _copied(collated)

    def _skip(self, unreadable: Sequence[Unreadable]) -> None:
        for name, reason in unreadable:
            if self._strict:
                raise InputError(
                    f"{name}: cannot be read ({reason}); repair or remove it, or leave strict out"
                )
            self._skipped[name] = None


class _Collated(NamedTuple):
    """A batch, the name and shape of its first sample, and what happened to the samples that are not in it.

    A fault is a message, because an error that a worker raises comes with its traceback.
    """

    unreadable: list[Unreadable]
    fault: str | None = None
    batch: Batch | None = None
    name: str = ""
    shape: tuple[int, ...] = ()


def _copied(collated: _Collated) -> _Collated:
    return collated._replace(batch=tree_map_only(Tensor, torch.clone, collated.batch))


def _collate(inputs: Inputs, items: list[Sample | Unreadable]) -> _Collated:
    unreadable = [item for item in items if isinstance(item, Unreadable)]
    samples = [item for item in items if isinstance(item, Sample)]
    if not samples:
        return _Collated(unreadable)
    first = samples[0]
    for sample in samples:
        fault = _fault(sample, first, inputs)
        if fault:
            return _Collated(unreadable, fault)
    values = torch.stack([sample.values for sample in samples])
    labels = [sample.label for sample in samples if sample.label is not None]
    batch: Batch
    if inputs.kind == "tokens":
        masks = [torch.ones_like(s.values) if s.mask is None else s.mask for s in samples]
        batch = {"input_ids": values, "attention_mask": torch.stack(masks)}
    else:
        batch = (values.float(), torch.tensor(labels)) if labels else values.float()
    return _Collated(unreadable, None, batch, first.name, tuple(first.values.shape))


def _fault(sample: Sample, first: Sample, inputs: Inputs) -> str | None:
    values: object = sample.values  # a preprocessing may return anything
    if not isinstance(values, Tensor):
        return f"{sample.name}: expected a tensor from preprocess, got {type(values).__name__}"
    if inputs.kind == "tokens":
        return None
    if not values.is_floating_point():
        return (
            f"{sample.name}: expected a float tensor from preprocess, got {values.dtype}; "
            "let it end in a conversion to float32"
        )
    mismatch = inputs.mismatch(tuple(values.shape))
    if mismatch:
        return f"{sample.name}: {mismatch}; resize it, or change the network's preprocess"
    if values.shape != first.values.shape:
        return _differing(sample.name, tuple(values.shape), first.name, tuple(first.values.shape))
    return None


def _differing(name: str, shape: tuple[int, ...], other: str, expected: tuple[int, ...]) -> str:
    return (
        f"{name}: expected the shape {list(expected)} of {other}, got {list(shape)}; "
        "resize all to one size, or give the network a preprocess that does"
    )


def display_name(path: Path) -> str:
    """Return the last part of a path; bytes that are not text become ?."""
    return path.resolve().name.encode("utf-8", "replace").decode()


def is_hidden(name: str) -> bool:
    """Say whether a file is hidden, or left by macOS when it unpacked an archive."""
    return name.startswith(".") or name == "__MACOSX"
