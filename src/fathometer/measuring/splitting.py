"""Inputs sorted by their label: sample batches and forward passes that hold one label each."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from fathometer.capture.axes import tensors_in
from fathometer.data import DataSource
from fathometer.errors import InputError, TooFewSamplesError
from fathometer.gauges.similarity import MIN_SAMPLES
from fathometer.measuring.batches import (
    Piece,
    as_tensors,
    copied,
    input_count,
    labels_of,
    slice_inputs,
    unfit_labels,
    units_of,
)
from fathometer.measuring.identity import code_hash
from fathometer.measuring.options import MeasureOptions
from fathometer.results.provenance import Provenance

By: TypeAlias = "str | Callable[[Any], Sequence[Any] | Tensor]"
"""`class` or `label`, the name of an entry of dict batches, or a function of a batch that returns labels."""

_LABELS = ("class", "label")
_MAX_NAMED = 8  # labels in a message


@dataclass
class _Group:
    """The inputs of one label that wait until they fill a batch."""

    inputs: list[Any] = field(default_factory=list)  # each a batch of one
    units: int = 0  # samples that they count for
    batches: int = 0  # that were full
    measured: int = 0  # inputs of these
    left_over: int = 0


class SplitByLabel:
    """Cuts the inputs into forward passes of one label each.

    The inputs of a label wait in memory until they fill a sample batch, so that at most `samples` of each
    label wait. Where each part of the data has one label, only one label waits, and a part is left as soon as
    its label has all of its batches.
    """

    def __init__(
        self,
        parts: Sequence[Iterable[Any]],
        by: By,
        classes: Sequence[str] | None,
        options: MeasureOptions,
        batch_size: int | None,
    ) -> None:
        self._parts, self._by, self._classes = parts, by, _different(classes or ())
        self._options, self._batch_size = options, batch_size
        self._batch = 0
        self._unfit = ""
        self._groups: dict[str, _Group] = {}

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """By label, in order: how many inputs were measured, and how many left over."""
        named = {name: place for place, name in enumerate(self._classes)}

        def order(label: str) -> tuple[int, str]:
            number = int(label) if label.isdecimal() else len(named)
            return named.get(label, number), label

        full = sorted((label for label, group in self._groups.items() if group.batches), key=order)
        return {label: (self._groups[label].measured, self._groups[label].left_over) for label in full}

    def __iter__(self) -> Iterator[Piece]:
        size = self._batch_size or 0
        for part in self._parts:
            for value in map(as_tensors, part):
                size = self._batch_size or max(size, input_count(value))
                labels = self._labels(value)
                self._unfit = self._unfit or unfit_labels(value)
                yield from self._add(value, labels, size)
                if len(self._parts) > 1 and self._groups[labels[-1]].batches == self._options.batches:
                    break
            for label in self._groups:
                yield from self._rest(label, size)

    def _add(self, value: Any, labels: Sequence[str], size: int) -> Iterator[Piece]:
        """Take the inputs of a batch, and yield the batches that they fill."""
        count = len(labels)
        units = units_of(value, count, tokens=self._options.counts_tokens).tolist()
        with torch._C.DisableTorchFunction():  # a watch sees every call of a torch function: these are many
            # Copies, so that the rest of the batch need not stay in memory.
            inputs = [copied(slice_inputs(value, index, index + 1, count)) for index in range(count)]
        for each, label, own in zip(inputs, labels, units, strict=True):
            group = self._groups.setdefault(label, _Group())
            if group.batches == self._options.batches:
                continue
            group.inputs.append(each)
            group.units += own
            if group.units >= self._options.samples:
                yield from self._full(label, size)

    def _full(self, label: str, size: int) -> Iterator[Piece]:
        """Yield the inputs of a batch, in forward passes of `size`."""
        group = self._groups[label]
        inputs, group.inputs, group.units = group.inputs, [], 0
        parts = [
            alike[start : start + size]
            for alike in (list(same) for _, same in groupby(inputs, _shapes))
            for start in range(0, len(alike), size)
        ]
        group.batches += 1
        group.measured += len(inputs)
        number, self._batch = self._batch, self._batch + 1
        for place, part in enumerate(parts, 1):
            yield Piece(number, _joined(part), len(part), place == len(parts), label, self._unfit)

    def _rest(self, label: str, size: int) -> Iterator[Piece]:
        """Yield what fills no batch, if it is to be kept."""
        group = self._groups[label]
        if self._options.leftover == "keep" and group.units >= (2 if group.batches else self._fewest):
            yield from self._full(label, size)
        group.left_over += len(group.inputs)
        group.inputs, group.units = [], 0

    @property
    def _fewest(self) -> int:
        """How many samples a label needs."""
        if self._options.leftover == "drop":
            return self._options.samples
        return MIN_SAMPLES if self._options.map else 2

    def check(self) -> None:
        """Warn of labels with too few samples; refuse data that have no others."""
        few = {label: group.left_over for label, group in self._groups.items() if not group.batches}
        named = ", ".join(
            f"label {label}: {count} input{'s' * (count != 1)}"
            for label, count in list(few.items())[:_MAX_NAMED]
        )
        named += f" and {len(few) - _MAX_NAMED} more labels" if len(few) > _MAX_NAMED else ""
        unit = "tokens" if self._options.counts_tokens else "samples"
        text = f"expected at least {self._fewest} {unit} of each label, got {named or 'no inputs'}"
        if len(few) == len(self._groups):
            raise TooFewSamplesError(
                f"{text}; use fewer samples for a batch, or keep what is left over", parameter="data"
            )
        if few:
            warnings.warn(f"{text}; these are left out", stacklevel=4)

    def _labels(self, value: Any) -> list[str]:
        """Return the label of each input as text, by its name where labels number classes."""
        by, count = self._by, input_count(value)
        found: Any = None
        if callable(by):
            found = by(value)
        elif isinstance(value, Mapping) and by in value:
            found = value[by]
        elif by in _LABELS:
            found = labels_of(value)
            if found is None and isinstance(value, tuple | list) and len(value) > 1:
                found = value[1]
        labels = _listed(found)
        if labels is None or len(labels) != count:
            raise InputError(_expected(by, found, value, count), parameter="by")
        names = self._classes if by in _LABELS else ()
        return [
            names[label] if isinstance(label, int) and 0 <= label < len(names) else str(label)
            for label in labels
        ]


def _different(names: Sequence[str]) -> list[str]:
    """Return names of classes, with their numbers where several have the same, as two of ImageNet have."""
    counts = Counter(names)
    return [f"{name} ({place})" if counts[name] > 1 else name for place, name in enumerate(names)]


def describe_by(by: By | None) -> dict[str, Any]:
    """Return what the data are split by, for the provenance; of a function also a hash of its code."""
    if by is None or isinstance(by, str):
        return {} if by is None else {"by": by}
    name = getattr(by, "__qualname__", type(by).__qualname__)
    return {"by": {"function": name, "code": code_hash(by)}}


def of_label(provenance: Provenance, label: str) -> Provenance:
    """Return the provenance of a sounding of one label."""
    name = f"{provenance.data.get('name', '?')}: {label}"
    return replace(provenance, data={**provenance.data, "name": name, "label": label})


def parts_of(data: Any, by: By | None) -> list[Any]:
    """Return the data in parts of one label each, where they can be read so; otherwise as they are."""
    if by not in _LABELS or not isinstance(data, DataSource):
        return [data]
    parts = data.by_label()
    if not parts:
        name = data.description["name"]
        raise InputError(f"expected data with labels, but {name} has none; give other data", parameter="by")
    return list(parts)


def check_by(by: By) -> By:
    """Refuse what is neither a name nor a function."""
    if isinstance(by, str) or callable(by):
        return by
    raise InputError(
        f"expected 'class', the name of an entry of dict batches, or a function of a batch, got {by!r}",
        parameter="by",
    )


def _listed(labels: Any) -> list[Any] | None:
    if isinstance(labels, Tensor | np.ndarray):
        return list(labels.tolist()) if labels.ndim == 1 else None
    return list(labels) if isinstance(labels, tuple | list) else None


def _expected(by: By, found: Any, value: Any, count: int) -> str:
    """Say where labels were expected, and what was there."""
    if found is not None:
        shape = f" of shape {list(found.shape)}" if isinstance(found, Tensor) else ""
        return f"expected {count} labels for a batch of {count} inputs, got {type(found).__name__}{shape}"
    if callable(by):
        return f"expected a function that returns {count} labels for a batch of {count} inputs, got None"
    entries = f" with the entries {', '.join(map(str, value))}" if isinstance(value, Mapping) else ""
    where = (
        "batches (inputs, labels), or dicts with labels" if by in _LABELS else f"dicts with an entry {by!r}"
    )
    return f"expected {where}, got batches of type {type(value).__name__}{entries}"


def _shapes(value: Any) -> list[tuple[torch.Size, torch.dtype]]:
    return [(tensor.shape, tensor.dtype) for tensor in tensors_in(value)]


def _joined(values: Sequence[Any]) -> Any:
    """Join batches of one input each to one batch; what does not belong to an input is that of the first."""
    first = values[0]
    if isinstance(first, Tensor):
        return torch.cat(list(values)) if first.ndim and len(first) == 1 else first
    if isinstance(first, Mapping):
        return {key: _joined([value[key] for value in values]) for key in first}
    if isinstance(first, list) and len(first) == 1 and next(tensors_in(first), None) is None:
        return [entry for value in values for entry in value]
    if isinstance(first, tuple | list):
        entries = (_joined(each) for each in zip(*values, strict=True))
        return first._make(entries) if hasattr(first, "_make") else type(first)(entries)
    return first
