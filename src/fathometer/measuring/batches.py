"""Turn the user's data into inputs of forward passes, none of which crosses the end of a sample batch."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from fathometer.capture.axes import is_dense, tensors_in
from fathometer.errors import InputError
from fathometer.measuring.options import Call

DEFAULT_BATCH_SIZE = 32

_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


class Piece(NamedTuple):
    """The input of one forward pass."""

    batch: int  # number of the sample batch that it belongs to
    value: Any
    samples: int  # how many inputs it holds
    completes: bool  # whether the sample batch is full with it
    label: str | None = None  # of all of its inputs, where the data are split by label
    unfit: str = ""  # why the labels of the batch that it was cut from cannot be used


def batches_of(data: Any, batch_size: int | None, seed: int) -> Iterable[Any]:
    """Return batches to iterate over: a tensor is cut, a `Dataset` gets a loader, other iterables stay.

    A dict of tensors, as a tokenizer returns it, is cut, too. An `IterableDataset` yields samples, as torch's
    `DataLoader` understands it.
    """
    if isinstance(data, Tensor | np.ndarray):
        return _whole_tensor(data).split(batch_size or DEFAULT_BATCH_SIZE)
    if isinstance(data, Mapping):
        return _cut_dict(data, batch_size or DEFAULT_BATCH_SIZE)
    if isinstance(data, Dataset):
        order = torch.Generator().manual_seed(seed)
        shuffle = not isinstance(data, IterableDataset)
        return DataLoader(data, batch_size or DEFAULT_BATCH_SIZE, shuffle=shuffle, generator=order)
    if isinstance(data, pd.DataFrame | pd.Series):
        raise InputError(
            f"expected a tensor or batches, got a {type(data).__name__}; "
            "give torch.tensor(frame.to_numpy(), dtype=torch.float32), or texts in a list",
            parameter="data",
        )
    if isinstance(data, str) or not isinstance(data, Iterable):
        raise InputError(
            "expected a DataLoader, a Dataset, a tensor or an iterable of batches, "
            f"got {type(data).__name__}; fathometer.data.open_data opens files and folders by name; "
            "a text is given in a list",
            parameter="data",
        )
    if isinstance(data, DataLoader) or hasattr(data, "description"):
        return data
    return _without_single_samples(data)


def with_labels(data: Any) -> Any:
    """Return a pair of all inputs and their labels as a data set; any other data as they are."""
    if isinstance(data, tuple | list) and len(data) == 2:
        inputs, labels = map(as_tensors, data)
        if isinstance(inputs, Tensor) and isinstance(labels, Tensor) and inputs.ndim > 1 and labels.ndim == 1:
            if labels.dtype in _WHOLE and len(labels) == len(inputs):
                return TensorDataset(inputs, labels)
            raise InputError(
                f"expected inputs and as many labels, whole numbers, got shapes {list(inputs.shape)} and "
                f"{list(labels.shape)} ({labels.dtype}); give inputs alone, or a list of batches",
                parameter="data",
            )
    return data


def _whole_tensor(data: Any) -> Tensor:
    tensor = as_tensors(data)
    if not is_dense(tensor) or not tensor.ndim:
        what = "a tensor without axes" if not tensor.ndim else f"a tensor of layout {tensor.layout}"
        hint = "; `.to_dense()` makes it dense" if tensor.ndim else ""
        raise InputError(f"expected a dense tensor [samples, ...], got {what}{hint}", parameter="data")
    return tensor


def _cut_dict(data: Mapping[Any, Any], size: int) -> list[Any]:
    """Cut a dict of tensors along their first axis."""
    value = as_tensors(data)
    if next(tensors_in(value), None) is None:
        given = ", ".join(f"{name}: {type(entry).__name__}" for name, entry in value.items())
        raise InputError(
            f"expected a dict of tensors, got {{{given}}}; a tokenizer returns them with "
            "tokenizer(texts, return_tensors='pt', padding=True)",
            parameter="data",
        )
    count = input_count(value)
    return [slice_inputs(value, start, start + size, count) for start in range(0, count, size)]


def _without_single_samples(items: Iterable[Any]) -> Iterator[Any]:
    """Yield the items; refuse those that are single samples, which would be taken for batches."""
    for item in items:
        parts = item if isinstance(item, tuple | list) else (item,)
        main = as_tensors(parts[0]) if parts else None
        is_vector = isinstance(main, Tensor) and main.ndim == 1 and main.is_floating_point()
        if is_vector or any(isinstance(part, int | float) for part in parts[1:]):
            what = "a vector" if is_vector else "a sample with its label"
            raise InputError(
                f"expected batches [samples, ...], got {what}; where each item is one sample, give "
                "DataLoader(data, batch_size=32), or torch.stack them into one tensor",
                parameter="data",
            )
        yield item


def pieces(items: Iterable[Any], samples: int, batch_size: int | None, *, tokens: bool) -> Iterator[Piece]:
    """Cut the inputs at the ends of sample batches and to at most `batch_size`.

    A sample batch is full with `samples` inputs; with `tokens`, with the input that brings the number
    of its tokens to `samples`.
    """
    batch, filled = 0, 0
    for item in items:
        value = as_tensors(item)
        count = input_count(value)
        units = units_of(value, count, tokens=tokens)
        unfit = unfit_labels(value)
        start = 0
        while start < count:
            reached = filled + units[start:].cumsum(0)
            full = (reached >= samples).nonzero()
            stop = start + int(full[0]) + 1 if len(full) else count
            stop = min(stop, start + (batch_size or count))
            filled += int(units[start:stop].sum())
            completes = filled >= samples
            piece = value if (start, stop) == (0, count) else slice_inputs(value, start, stop, count)
            yield Piece(batch, piece, stop - start, completes, unfit=unfit)
            if completes:
                batch, filled = batch + 1, 0
            start = stop


def first_sample(items: Iterable[Any]) -> tuple[Tensor | None, Iterator[Any]]:
    """Return the first sample, by which the data are known again, and an iterator over all of the data."""
    iterator = iter(items)
    first = next(iterator, None)
    tensor = next((t for t in tensors_in(as_tensors(first)) if t.ndim and len(t)), None)
    row = None if tensor is None else tensor[0]
    return row, iterator if first is None else chain((first,), iterator)


def label_entry(value: Any) -> Any:
    """Return what a batch has in the place of labels, of any type; None if it has nothing there."""
    if isinstance(value, Mapping):
        return value.get("labels", value.get("label"))
    return value[1] if isinstance(value, tuple | list) and len(value) > 1 else None


def labels_of(value: Any) -> Tensor | None:
    """Return the labels `[n]` of a batch: the second of `(inputs, labels)`, or `labels` or `label` of a dict.

    Labels are whole numbers; others, such as those of each token, are not seen.
    """
    found = label_entry(value)
    if not isinstance(found, Tensor) or found.ndim != 1 or found.dtype not in _WHOLE:
        return None
    return found if len(found) == input_count(value) else None


def unfit_labels(value: Any) -> str:
    """Say why numbers that stand where labels are expected cannot be labels; empty if there are none."""
    found, count = label_entry(value), input_count(value)
    if not isinstance(found, Tensor) or found.ndim != 1:
        return ""
    if len(found) != count:
        return f"a batch of {count} inputs has {len(found)} labels"
    return "" if found.dtype in _WHOLE else f"labels must be whole numbers, got {found.dtype}"


def run(model: nn.Module, value: Any, device: torch.device, call: Call | None) -> Any:
    """Run one forward pass, as the form of the input asks for, and return its output.

    `(inputs, labels)` passes the first; a dict passes what `forward` takes, by keyword.
    """
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), None)

    def moved(entry: Any) -> Any:
        """Move to the device; floats get the dtype of the network, integers stay as they are."""
        if not isinstance(entry, Tensor):
            return entry
        return entry.to(device, dtype if entry.is_floating_point() else None, non_blocking=True)

    value = map_entries(value, moved)
    if call is not None:
        return call(model, value)
    if isinstance(value, tuple | list):
        value = value[0]
    if isinstance(value, Mapping):
        return model(**_accepted(model, value))
    return model(value)


def _accepted(model: nn.Module, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries that `forward` takes: a data set may also carry labels and indices."""
    parameters = inspect.signature(model.forward).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return dict(value)
    return {name: entry for name, entry in value.items() if name in parameters}


def as_tensors(value: Any) -> Any:
    """Return a batch with tensors instead of NumPy's arrays, and dicts instead of other mappings."""
    return map_entries(value, _as_tensor)


def _as_tensor(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    native = value.astype(value.dtype.newbyteorder("="), copy=False)
    if any(stride < 0 for stride in native.strides):  # torch has no such tensors
        native = native.copy()
    try:
        if native.flags.writeable:
            return torch.from_numpy(native)
        with warnings.catch_warnings():  # a read-only array may be too large to copy
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            return torch.from_numpy(native)
    except TypeError as error:
        raise InputError(
            f"expected an array of numbers, got {value.dtype}; texts are given in a list", parameter="data"
        ) from error


def map_entries(value: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a function to all that tuples, lists and mappings hold, at any depth.

    `torch.utils._pytree` does not know every mapping, such as the batches of a tokenizer.
    """
    if isinstance(value, Mapping):
        return {key: map_entries(entry, change) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        entries = (map_entries(entry, change) for entry in value)
        return value._make(entries) if hasattr(value, "_make") else type(value)(entries)
    return change(value)


def copied(value: Any) -> Any:
    """Return a batch with copies of its tensors."""
    return map_entries(value, lambda entry: entry.clone() if isinstance(entry, Tensor) else entry)


def input_count(value: Any) -> int:
    """Return how many inputs a batch holds."""
    first = next((tensor for tensor in tensors_in(value) if tensor.ndim), None)
    if first is None:
        raise InputError(
            "expected batches that are tensors [samples, ...], (tensor, label) or dicts of tensors, "
            f"got {type(value).__name__} without a tensor in it; texts are given in one list, not in batches",
            parameter="data",
        )
    return len(first)


def units_of(value: Any, count: int, *, tokens: bool) -> Tensor:
    """Return how many samples each input counts for: one, or its number of tokens."""
    if not tokens:
        return torch.ones(count, dtype=torch.long)
    mask = value.get("attention_mask") if isinstance(value, Mapping) else None
    if mask is not None:
        return mask.cpu().long().sum(1)
    first = next(tensor for tensor in tensors_in(value) if tensor.ndim)
    if first.ndim != (3 if first.is_floating_point() else 2):
        raise InputError(
            "reduction 'tokens': expected token ids [n, length], embeddings [n, length, width] or an "
            f"attention mask, got shape {list(first.shape)}; 'position' draws positions of images",
            parameter="data",
        )
    return torch.full((count,), first.shape[1])


def slice_inputs(value: Any, start: int, stop: int, count: int) -> Any:
    """Cut all that has a row for each sample: tensors, and lists of names and the like."""
    return take_inputs(value, range(start, stop), count)


def take_inputs(value: Any, rows: Sequence[int], count: int) -> Any:
    """Take rows of all that has a row for each sample; those of a range are not copied."""
    if isinstance(value, Tensor):
        if not is_dense(value):
            raise InputError(
                f"expected dense tensors to cut into batches, got layout {value.layout}; "
                "give a batch_size and samples that fit, or `.to_dense()`",
                parameter="data",
            )
        if not value.ndim or len(value) != count:
            return value
        return value[rows.start : rows.stop] if isinstance(rows, range) else value[list(rows)]
    if isinstance(value, Mapping):
        return {key: take_inputs(entry, rows, count) for key, entry in value.items()}
    if isinstance(value, list) and len(value) == count and next(tensors_in(value), None) is None:
        return [value[row] for row in rows if row < count]
    if isinstance(value, tuple | list):
        entries = (take_inputs(entry, rows, count) for entry in value)
        return value._make(entries) if hasattr(value, "_make") else type(value)(entries)
    return value
