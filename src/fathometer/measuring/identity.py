"""What is measured: network, data and the user's code, known by their contents.

Two soundings with the same identity have the same values; a journal or a finished file is used again only if
its identity is the same.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, RandomSampler, SequentialSampler, Subset, TensorDataset

from fathometer.capture import unwrapped
from fathometer.capture.axes import is_dense
from fathometer.models import LoadedModel
from fathometer.results.provenance import describe_model, frozen_state, tensor_hash, weights_hash

_LIBRARIES = ("torch", "torchvision", "timm", "transformers", "numpy", "scipy", "fathometer", "builtins")
_PLAIN = (str, bytes, bool, int, float, complex, type(None))
_BLOCK = 2**20  # words in a block of a checksum: 8 MB


def describe_network(model: nn.Module | LoadedModel, name: str | None) -> tuple[nn.Module, dict[str, Any]]:
    """Return the network without wrappers, and its description, apart from the hash of its weights."""
    facts: dict[str, Any] = {}
    if isinstance(model, LoadedModel):
        facts = {"weights": model.weights, "preprocess": model.inputs.preprocess_name}
        name, model = name or model.name, model.module
    network = unwrapped(model)
    return network, {**describe_model(network, name), **facts, "structure": structure_hash(network)}


def describe_data(data: Any, first: Tensor | None) -> dict[str, Any]:
    """Return the name and size of the data, and a hash of their first sample."""
    facts = _data_facts(data)
    if first is None:
        return facts
    return {**facts, "sample_shape": list(first.shape), "first_sample_sha256": tensor_hash(first)}


def _data_facts(data: Any) -> dict[str, Any]:
    described = getattr(data, "description", None)
    if isinstance(described, Mapping):
        return dict(described)
    count = count_samples(data)
    if isinstance(data, DataLoader):
        facts = _data_facts(data.dataset)
        if not isinstance(data.sampler, SequentialSampler | RandomSampler) and count is not None:
            facts["sampler"] = type(data.sampler).__name__
    elif isinstance(data, Subset):
        facts = _data_facts(data.dataset)
        facts["name"] = f"Subset of {facts['name']}"
        facts["indices_sha256"] = tensor_hash(torch.as_tensor(list(data.indices)))
    else:
        facts = {"name": type(data).__name__}
    return facts if count is None else {**facts, "count": count}


def count_samples(data: Any) -> int | None:
    """Return the number of samples in the data, or None if it is not known."""
    if isinstance(data, Tensor | np.ndarray):
        return len(data)
    try:
        if not isinstance(data, DataLoader):
            sized = isinstance(data, Dataset) or isinstance(getattr(data, "description", None), Mapping)
            return None if not sized or isinstance(data, list | tuple) else len(data)
        if data.batch_size is None:  # it yields batches of unknown size
            return None
        iterable = isinstance(data.dataset, torch.utils.data.IterableDataset)
        count = len(data.dataset if iterable else data.sampler)  # type: ignore[arg-type]
    except TypeError:
        return None
    return count - count % data.batch_size if data.drop_last else count


def hash_contents(network: nn.Module, data: Any) -> Callable[[], tuple[str, dict[str, Any]]]:
    """Return a function that computes the hash of the weights as they are now, and those of data in memory.

    It can run in a thread beside the forward passes.
    """
    state = frozen_state(network)
    inner = data.dataset if isinstance(data, DataLoader) else data
    inner = inner.dataset if isinstance(inner, Subset) else inner
    tensors = inner.tensors if isinstance(inner, TensorDataset) else (inner,)
    return lambda: (weights_hash(state), _hash_tensors(tensors))


def _hash_tensors(values: tuple[Any, ...]) -> dict[str, Any]:
    tensors = [torch.from_numpy(v) if isinstance(v, np.ndarray) else v for v in values]
    if not all(isinstance(tensor, Tensor) and tensor.ndim and is_dense(tensor) for tensor in tensors):
        return {}
    return {"sha256": checksum(tensors)}


def checksum(tensors: Iterable[Tensor]) -> str:
    """Return a hash of dense tensors that is computed where they are: data on a GPU need not leave it.

    Every block of 64-bit words w gives Σ wᵢ cᵢ mod 2⁶⁴ with fixed coefficients c; the SHA-256 of dtypes,
    shapes and these sums is returned. It is the same on every device.
    """
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype} {list(tensor.shape)}\n".encode())
        content = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        coefficients = _coefficients(min(_BLOCK, content.numel() // 8 + 1), content.device)
        sums = []
        for block in content.split(8 * _BLOCK):
            if len(block) % 8:
                block = nn.functional.pad(block, (0, -len(block) % 8))
            elif block.storage_offset() % 8:
                block = block.clone()
            words = block.view(torch.int64)
            sums.append((words * coefficients[: len(words)]).sum())
        digest.update(torch.stack(sums).cpu().numpy().tobytes() if sums else b"")
    return digest.hexdigest()


def _coefficients(count: int, device: torch.device) -> Tensor:
    """Return odd numbers that look random, the same on every device."""
    numbers = torch.arange(1, count + 1, device=device) * 0x1E3779B97F4A7C15
    numbers = (numbers ^ (numbers >> 29)) * 0x3F58476D1CE4E5B9
    return (numbers ^ (numbers >> 32)) | 1


def code_hash(target: Callable[..., Any]) -> str:
    """Return the SHA-256 of the bytecode of a function, class or callable object.

    Default arguments, values in closures, attributes of callable objects, and the constants and functions of
    the same module that it uses are part of it; comments, line numbers and the code of libraries are not.
    """
    digest = hashlib.sha256()
    for part in _parts(target, set()):
        digest.update(f"{part}\n".encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def structure_hash(network: nn.Module) -> str:
    """Return the SHA-256 of a network's modules and options and of the user's own `forward` methods."""
    shown = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(network))  # addresses differ from run to run
    digest = hashlib.sha256(shown.encode())
    classes = {type(module) for module in network.modules()}
    own = [kind for kind in classes if _library(kind.__module__) is None]
    for kind in sorted(own, key=lambda kind: (kind.__module__, kind.__qualname__)):
        digest.update(code_hash(kind.forward).encode())
    return digest.hexdigest()


def _parts(value: Any, seen: set[int]) -> Iterator[str]:
    """Yield text for everything that a value depends on."""
    if isinstance(value, _PLAIN):
        yield repr(value)
    elif isinstance(value, set | frozenset):
        yield from sorted("".join(_parts(entry, seen)) for entry in value)
    elif isinstance(value, tuple | list):
        yield type(value).__name__
        for entry in value:
            yield from _parts(entry, seen)
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield repr(key) if isinstance(key, _PLAIN) else type(key).__name__
            yield from _parts(entry, seen)
    elif isinstance(value, Tensor):
        yield tensor_hash(value)
    elif id(value) in seen:
        return
    else:
        seen.add(id(value))
        yield from _object_parts(value, seen)


def _object_parts(value: Any, seen: set[int]) -> Iterator[str]:
    if isinstance(value, types.CodeType):
        yield value.co_code.hex()
        yield " ".join((*value.co_names, *value.co_varnames))
        yield from _parts(value.co_consts, seen)
    elif isinstance(value, functools.partial):
        yield from _parts((value.func, value.args, value.keywords), seen)
    elif isinstance(value, types.MethodType):
        yield from _parts((value.__func__, value.__self__), seen)
    elif isinstance(value, nn.Module):
        yield from (structure_hash(value), weights_hash(value.state_dict()))
    elif _is_of_a_library(value):
        yield f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"
    elif isinstance(value, types.FunctionType):
        yield from _parts((value.__code__, value.__defaults__, value.__kwdefaults__), seen)
        yield from _parts([cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)], seen)
        yield from _parts(_used_globals(value), seen)
    elif isinstance(value, type):
        yield value.__qualname__
        for kind in value.__mro__:
            if _library(kind.__module__) is None:
                yield from _parts([entry for _, entry in sorted(_members(kind).items())], seen)
    else:
        state = getattr(value, "__dict__", {}).items()
        yield from _parts((type(value), {name: entry for name, entry in state if _is_hashed(entry)}), seen)


def _used_globals(function: types.FunctionType) -> dict[str, Any]:
    """Return the constants that a function names, and the functions and classes of its own module."""
    names = set(_names(function.__code__))
    found = {}
    for name, value in sorted(function.__globals__.items()):
        if isinstance(value, types.FunctionType | type):
            is_used = name in names and value.__module__ == function.__module__
        else:
            is_used = name in names and (_is_hashed(value) or isinstance(value, Mapping))
        if is_used:
            found[name] = value
    return found


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _members(kind: type) -> dict[str, Any]:
    found = {}
    for name, entry in vars(kind).items():
        entry = inspect.unwrap(getattr(entry, "__func__", getattr(entry, "fget", None) or entry))
        if isinstance(entry, (types.FunctionType, *_PLAIN)) and name not in ("__module__", "__doc__"):
            found[name] = entry
    return found


def _library(module: str | None) -> str | None:
    """Return the library that a module belongs to, if it is one whose version the provenance has."""
    top = (module or "").partition(".")[0]
    return top if top in _LIBRARIES else None


def _is_hashed(entry: Any) -> bool:
    """Return whether an attribute of a callable object counts: objects of other classes do not."""
    counted = (*_PLAIN, tuple, list, Tensor, nn.Module, types.FunctionType, functools.partial)
    return isinstance(entry, counted)


def _is_of_a_library(value: Any) -> bool:
    builtin = inspect.isroutine(value) and not isinstance(value, types.FunctionType)
    return builtin or inspect.ismodule(value) or _library(getattr(value, "__module__", None)) is not None


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
