"""Samples in batches, in an order that depends on the seed alone."""

from __future__ import annotations

import multiprocessing
import sys
import warnings
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from fathometer.data.inputs import Inputs
from fathometer.data.samples import Sample, Samples, Unreadable, brief, fault_of_shape
from fathometer.errors import FathometerError, InputError

Batch: TypeAlias = "Tensor | tuple[Tensor, Tensor] | dict[str, Tensor]"
"""Samples `[b, ...]`; with labels `[b]`; or `input_ids` and `attention_mask`, both `[b, t]`."""


class _Parcel(NamedTuple):
    """A batch and what became of the samples that are not in it: all that a worker sends."""

    batch: Batch | None
    first: str  # the name of the first sample
    shape: tuple[int, ...]
    unreadable: list[Unreadable]
    fault: str | None = None


class DataSource:
    """Batches of a network's input, the same at every pass.

    A batch is a tensor `[b, ...]`, a pair of it and labels `[b]`, or for tokens a dictionary of `input_ids`
    and `attention_mask`, both `[b, t]`. It is smaller than `batch_size` where samples were unreadable.
    The sequence of samples depends neither on `batch_size` nor on `workers`.

    Attributes:
        description: what the data are, as JSON: `kind`, `name`, `count`, `labels`, `shuffle`, `seed` and
            more. Files and folders also have `sha256`, a hash of their content (`contents_hash` in
            `fathometer.data.files` says what it covers); data are the same if `name`, `sha256` and `count`
            agree. Noise has none: it follows from its seed and shape.
        all_readable: whether every sample is taken to be readable, so that one can begin in the middle. True
            for noise, numbers and tokens, and in strict mode; set it for images that are known to be.
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
    ) -> None:
        self.description: dict[str, object] = {
            **samples.description,
            "count": len(samples),
            "shuffle": shuffle,
            "seed": seed,
        }
        self.all_readable = samples.all_readable or strict
        self._samples, self._inputs = samples, inputs
        self._batch_size, self._workers, self._strict, self._seed = batch_size, workers, strict, seed
        self._order: Sequence[int] = range(len(samples))
        if shuffle:
            self._order = np.random.default_rng(seed).permutation(len(samples)).tolist()
        self._skipped: dict[str, None] = {}

    @property
    def skipped(self) -> list[str]:
        """The names of the samples that could not be read so far, in the order of their coming."""
        return list(self._skipped)

    def __len__(self) -> int:
        """How many samples there are, the unreadable among them."""
        return len(self._samples)

    def __iter__(self) -> Generator[Batch, None, None]:
        first: _Parcel | None = None
        lost: Unreadable | None = None
        with closing(self._parcels()) as parcels:  # workers end with it, also after an error
            for parcel in parcels:
                self._skip(parcel.unreadable)
                lost = lost or next(iter(parcel.unreadable), None)
                if parcel.fault:
                    raise InputError(parcel.fault)
                if parcel.batch is None:
                    continue
                first = first or parcel
                if parcel.shape != first.shape:
                    raise InputError(_differing(parcel.first, parcel.shape, first.first, first.shape))
                yield parcel.batch
        if first is None and lost is not None:
            raise InputError(
                f"{self.description['name']}: expected at least one readable image, got none of {len(self)}; "
                f"the first: {lost.name} ({lost.reason})"
            )

    def beginning_at(self, sample: int) -> tuple[int, Iterable[Batch]]:
        """The batches from the one with that sample on, and how many samples come before it.

        Without `all_readable` these are all batches: how many samples lie before one is only known then.
        """
        before = sample // self._batch_size * self._batch_size if self.all_readable else 0
        rest = copy(self)
        rest._order = self._order[before:]
        return before, rest

    def _skip(self, unreadable: Sequence[Unreadable]) -> None:
        for name, reason in unreadable:
            if self._strict:
                raise InputError(
                    f"{name}: cannot be read ({reason}); repair or remove it, or leave strict out"
                )
            self._skipped[name] = None

    def _parcels(self) -> Generator[_Parcel, None, None]:
        workers = min(self._workers, -(-len(self._samples) // self._batch_size))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # more workers than cores, a fork beside threads: as was asked
            parcels = iter(
                DataLoader(
                    _Plain(self._samples),
                    batch_size=self._batch_size,
                    sampler=self._order,
                    num_workers=workers,
                    collate_fn=_Collate(self._inputs),
                    generator=torch.Generator().manual_seed(self._seed),  # leaves the global one alone
                    multiprocessing_context=_context() if workers else None,
                )
            )
        while True:
            try:
                parcel: _Parcel | None = next(parcels, None)
            except (RuntimeError, OSError) as error:
                if not workers:
                    raise
                raise FathometerError(f"a worker stopped ({brief(error)}); try workers=0") from error
            if parcel is None:
                return
            yield parcel


class _Plain(Dataset[Any]):
    """Samples as torch wants them."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> Sample | Unreadable:
        return self._samples[index]


@dataclass(frozen=True)
class _Collate:
    """From samples to a parcel. A fault is told in it: raised in a worker, it would lose its form."""

    inputs: Inputs

    def __call__(self, items: list[Sample | Unreadable]) -> _Parcel:
        unreadable = [item for item in items if isinstance(item, Unreadable)]
        samples = [item for item in items if isinstance(item, Sample)]
        if not samples:
            return _Parcel(None, "", (), unreadable)
        fault = next(filter(None, (self._fault(s, samples[0]) for s in samples)), None)
        if fault:
            return _Parcel(None, "", (), unreadable, fault)
        values, first = torch.stack([s.values for s in samples]), samples[0]
        return _Parcel(self._batch(values, samples), first.name, tuple(values.shape[1:]), unreadable)

    def _batch(self, values: Tensor, samples: list[Sample]) -> Batch:
        if self.inputs.kind == "tokens":
            masks = [torch.ones_like(s.values) if s.mask is None else s.mask for s in samples]
            return {"input_ids": values, "attention_mask": torch.stack(masks)}
        values = values.float()
        labels = [s.label for s in samples if s.label is not None]
        return (values, torch.tensor(labels)) if labels else values

    def _fault(self, sample: Sample, first: Sample) -> str | None:
        values: object = sample.values  # a preprocess may return anything
        if not isinstance(values, Tensor):
            return f"{sample.name}: expected a tensor from preprocess, got {type(values).__name__}"
        if self.inputs.kind == "tokens":
            return None
        if not values.is_floating_point():
            return (
                f"{sample.name}: expected a float tensor from preprocess, got {values.dtype}; "
                "let it end in a conversion to float32"
            )
        fault = fault_of_shape(tuple(values.shape), self.inputs)
        if fault:
            return f"{sample.name}: {fault}; resize it, or change the network's preprocess"
        if values.shape != first.values.shape:
            return _differing(sample.name, tuple(values.shape), first.name, tuple(first.values.shape))
        return None


def _differing(name: str, shape: tuple[int, ...], other: str, expected: tuple[int, ...]) -> str:
    return (
        f"{name}: expected the shape {list(expected)} of {other}, got {list(shape)}; "
        "resize all to one size, or give the network a preprocess that does"
    )


def _context() -> str | None:
    """Fork on Linux, where a preprocess need not be picklable then; elsewhere what is usual there."""
    return "fork" if sys.platform == "linux" and "fork" in multiprocessing.get_all_start_methods() else None
