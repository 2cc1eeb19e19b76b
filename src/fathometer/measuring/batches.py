"""From whatever the user iterates over to forward passes that never straddle two sample batches."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from fathometer.capture.axes import is_dense, tensors_in
from fathometer.errors import InputError
from fathometer.measuring.options import Call

DEFAULT_BATCH_SIZE = 32


class Piece(NamedTuple):
    """The input of one forward pass."""

    batch: int  # which sample batch it belongs to
    value: Any
    samples: int  # how many inputs it holds
    completes: bool  # whether the sample batch is full with it


def batches_of(data: Any, batch_size: int | None, seed: int) -> Iterable[Any]:
    """What to iterate over: one tensor is cut, a data set gets a loader, the rest is taken as it is."""
    if isinstance(data, np.ndarray):
        data = torch.from_numpy(data)
    if isinstance(data, Tensor):
        return data.split(batch_size or DEFAULT_BATCH_SIZE)
    if isinstance(data, Dataset) and not isinstance(data, torch.utils.data.IterableDataset):
        order = torch.Generator().manual_seed(seed)
        return DataLoader(data, batch_size=batch_size or DEFAULT_BATCH_SIZE, shuffle=True, generator=order)
    if isinstance(data, str | Mapping) or not isinstance(data, Iterable):
        raise InputError(
            "data: expected a DataLoader, a Dataset, a tensor or an iterable of batches, "
            f"got {type(data).__name__}; fathometer.data.open_data opens files and folders by name"
        )
    return data


def pieces(
    items: Iterable[Any], samples: int, batch_size: int | None, *, tokens: bool, before: int = 0
) -> Iterator[Piece]:
    """The inputs, cut at the ends of sample batches and to at most `batch_size`.

    A sample batch is full with `samples` inputs; with `tokens`, with the input that brings the number
    of its tokens to `samples`. So many inputs came `before`.
    """
    batch, filled = divmod(before, samples)
    for item in items:
        value = _as_tensors(item)
        count = _count(value)
        units = _tokens(value, count) if tokens else torch.ones(count, dtype=torch.long)
        start = 0
        while start < count:
            reached = filled + units[start:].cumsum(0)
            full = (reached >= samples).nonzero()
            stop = start + int(full[0]) + 1 if len(full) else count
            stop = min(stop, start + (batch_size or count))
            filled += int(units[start:stop].sum())
            completes = filled >= samples
            piece = value if (start, stop) == (0, count) else _slice(value, start, stop, count)
            yield Piece(batch, piece, stop - start, completes)
            if completes:
                batch, filled = batch + 1, 0
            start = stop


def first_sample(items: Iterable[Any]) -> tuple[Tensor | None, Iterator[Any]]:
    """The first sample of the data, to know them by, and all of the data."""
    iterator = iter(items)
    first = next(iterator, None)
    return _first_row(first), iterator if first is None else chain((first,), iterator)


def _first_row(item: Any) -> Tensor | None:
    tensor = next((t for t in tensors_in(_as_tensors(item)) if t.ndim and len(t)), None)
    return None if tensor is None else tensor[0]


def not_finite(value: Any) -> int | None:
    """The first row with a NaN or inf, if the network takes one dense tensor.

    In the CPU's memory alone: elsewhere asking takes time.
    """
    tensor = value[0] if isinstance(value, tuple | list) and value else value
    if not isinstance(tensor, Tensor) or not is_dense(tensor) or tensor.device.type != "cpu":
        return None
    if not tensor.is_floating_point() or tensor.dtype.itemsize == 1 or not tensor.ndim:
        return None
    if bool(tensor.sum().isfinite()):
        return None
    bad = (~tensor.isfinite()).reshape(len(tensor), -1).any(1)
    return int(bad.int().argmax()) if bool(bad.any()) else None


def run(model: nn.Module, value: Any, device: torch.device, call: Call | None) -> None:
    """One forward pass, as the form of the input asks for.

    `(inputs, labels)` passes the first; a dict passes what `forward` takes, by keyword.
    """
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), None)
    value = _moved(value, device, dtype)
    if call is not None:
        call(model, value)
        return
    if isinstance(value, tuple | list):
        value = value[0]
    if isinstance(value, Mapping):
        model(**_accepted(model, value))
    else:
        model(value)


def _accepted(model: nn.Module, value: Mapping[str, Any]) -> dict[str, Any]:
    """What `forward` takes: a data set may carry labels and indices, too."""
    parameters = inspect.signature(model.forward).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return dict(value)
    return {name: entry for name, entry in value.items() if name in parameters}


def _as_tensors(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    if isinstance(value, Mapping):
        return {key: _as_tensors(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return _rebuilt(value, map(_as_tensors, value))
    return value


def _rebuilt(value: Any, entries: Iterable[Any]) -> Any:
    """A tuple, named tuple or list of the same kind with other entries."""
    return value._make(entries) if hasattr(value, "_make") else type(value)(entries)


def _count(value: Any) -> int:
    first = next((tensor for tensor in tensors_in(value) if tensor.ndim), None)
    if first is None:
        raise InputError(
            "data: expected batches that are tensors, (tensor, label) or dicts of tensors, "
            f"got {type(value).__name__} without a tensor in it"
        )
    return len(first)


def _tokens(value: Any, count: int) -> Tensor:
    """How many tokens each input has."""
    mask = value.get("attention_mask") if isinstance(value, Mapping) else None
    if mask is not None:
        return mask.cpu().long().sum(1)
    first = next(tensor for tensor in tensors_in(value) if tensor.ndim)
    if first.ndim != (3 if first.is_floating_point() else 2):
        raise InputError(
            "reduction 'tokens': expected token ids [n, length], embeddings [n, length, width] or an "
            f"attention mask, got shape {list(first.shape)}; 'position' draws positions of images"
        )
    return torch.full((count,), first.shape[1])


def _slice(value: Any, start: int, stop: int, count: int) -> Any:
    if isinstance(value, Tensor):
        return value[start:stop] if value.ndim and len(value) == count else value
    if isinstance(value, Mapping):
        return {key: _slice(entry, start, stop, count) for key, entry in value.items()}
    if isinstance(value, tuple) or (isinstance(value, list) and next(tensors_in(value), None) is not None):
        return _rebuilt(value, (_slice(entry, start, stop, count) for entry in value))
    if isinstance(value, list) and len(value) == count:
        return value[start:stop]
    return value


def _moved(value: Any, device: torch.device, dtype: torch.dtype | None) -> Any:
    """On the device; floats in the dtype of the network, integers as they are."""
    if isinstance(value, Tensor):
        return value.to(device, dtype if value.is_floating_point() else None, non_blocking=True)
    if isinstance(value, Mapping):
        return {key: _moved(entry, device, dtype) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return _rebuilt(value, (_moved(entry, device, dtype) for entry in value))
    return value
