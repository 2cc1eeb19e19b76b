"""Identify the network, the data and the user's code by their contents.

Two soundings with the same identity have the same values; a journal or a finished file is used again only if
its identity is the same.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, RandomSampler, SequentialSampler, Subset, TensorDataset

from fathometer.capture import unwrapped
from fathometer.capture.axes import is_dense, tensors_in
from fathometer.measuring.batches import as_tensors
from fathometer.measuring.checksums import checksum, weights_checksum
from fathometer.models import LoadedModel
from fathometer.results.provenance import describe_model, frozen_state, tensor_hash, weights_hash

_LIBRARIES = ("torch", "torchvision", "timm", "transformers", "numpy", "scipy", "fathometer", "builtins")
_PLAIN = (str, bytes, bool, int, float, complex, type(None), range, torch.dtype)
_CONTAINERS = (tuple, list, set, frozenset, Mapping)
_HASHED = (
    *(*_PLAIN, *_CONTAINERS, Tensor, np.ndarray, np.generic, nn.Module, Enum, types.SimpleNamespace),
    *(types.FunctionType, types.BuiltinFunctionType, functools.partial),
)
_SET_BY_TORCH = frozenset(vars(nn.Module()))  # attributes of every module: its parts, hooks, training
_READS_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")

_Seen: TypeAlias = dict[int, tuple[str, Any]]
"""By id, a name for each object that is already described, and the object: then its id stays its own."""


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
    if isinstance(data, Mapping):
        return next((len(tensor) for tensor in tensors_in(as_tensors(data)) if tensor.ndim), None)
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
    """Return a function that computes checksums of the weights as they are now, and of data in memory.

    It can run in a thread beside the forward passes. Weights on a GPU are read at once: it takes little time.
    """
    state = frozen_state(network)
    inner = data.dataset if isinstance(data, DataLoader) else data
    inner = inner.dataset if isinstance(inner, Subset) else inner
    tensors: list[Tensor] = []
    if isinstance(inner, TensorDataset):
        tensors = list(inner.tensors)
    elif isinstance(inner, Tensor | np.ndarray | Mapping) or type(inner) in (list, tuple):  # others do more
        tensors = list(tensors_in(as_tensors(inner)))
    if all(tensor.device.type == "cpu" for tensor in tensors_in(state)):
        return lambda: (weights_checksum(state), _hash_tensors(tensors))
    weights = weights_checksum(state)
    return lambda: (weights, _hash_tensors(tensors))


def _hash_tensors(tensors: Sequence[Tensor]) -> dict[str, Any]:
    if not tensors or not all(is_dense(tensor) for tensor in tensors):
        return {}
    return {"sha256": checksum(tensors)}


def code_hash(target: Callable[..., Any]) -> str:
    """Return the SHA-256 of the bytecode of a function, class or callable object.

    Default arguments, values in closures, attributes of callable objects, and the constants and functions of
    the same module that it uses are part of it; comments, line numbers and the code of libraries are not.
    """
    digest = hashlib.sha256()
    for part in _parts(target, {}):
        digest.update(f"{part}\n".encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def structure_hash(network: nn.Module) -> str:
    """Return the SHA-256 of a network's modules, and of the code and attributes of the user's own modules."""
    digest = hashlib.sha256(_shown(network).encode("utf-8", "backslashreplace"))
    for part in _own_module_parts(network, {}):
        digest.update(f"{part}\n".encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def _shown(network: nn.Module) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(network))  # addresses differ from run to run


def _own_module_parts(network: nn.Module, seen: _Seen) -> Iterator[str]:
    """Yield text for the code and attributes of the modules whose classes are not those of a library."""
    modules = list(network.named_modules())
    seen |= {
        id(module): (f"module {path}", module) for path, module in modules
    }  # attributes may refer to them
    for path, module in modules:
        if _library(type(module).__module__) is None:
            state = {
                name: entry
                for name, entry in sorted({**vars(module), **_unsaved_buffers(module)}.items())
                if name not in _SET_BY_TORCH and _is_hashed(entry)
            }
            yield path
            yield from _parts((type(module), state), seen)


def _unsaved_buffers(module: nn.Module) -> dict[str, Any]:
    """Return the buffers that the checksum of the weights does not cover."""
    return {name: module._buffers[name] for name in module._non_persistent_buffers_set}


def _parts(value: Any, seen: _Seen) -> Iterator[str]:
    """Yield text for everything that a value depends on, the same in every process.

    `seen` has what is already described, by id.
    """
    if isinstance(value, _PLAIN):
        yield repr(value)
    elif isinstance(value, Tensor):
        yield tensor_hash(value)
    elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        yield f"{value.dtype.str} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif id(value) in seen:
        yield seen[id(value)][0]
    elif isinstance(value, _CONTAINERS):
        seen[id(value)] = "container around this", value
        yield from _container_parts(value, seen)
        del seen[id(value)]  # equal ones count as equal, the same or not
    else:
        seen[id(value)] = f"object {len(seen)}", value
        yield from _object_parts(value, seen)


def _container_parts(value: Any, seen: _Seen) -> Iterator[str]:
    yield f"{type(value).__name__} {len(value)}"
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield repr(key) if isinstance(key, _PLAIN) else type(key).__name__
            yield from _parts(entry, seen)
    elif isinstance(value, set | frozenset):  # their order differs from process to process
        yield from sorted("\n".join(_parts(entry, dict(seen))) for entry in value)
    else:
        for entry in value:
            yield from _parts(entry, seen)


def _object_parts(value: Any, seen: _Seen) -> Iterator[str]:
    if isinstance(value, np.ndarray | np.generic):
        yield from _parts(value.tolist(), seen)
    elif isinstance(value, types.CodeType):
        yield value.co_code.hex()
        yield " ".join((*value.co_names, *value.co_varnames))
        yield from _parts(value.co_consts, seen)
    elif isinstance(value, functools.partial):
        yield from _parts((value.func, value.args, value.keywords), seen)
    elif isinstance(value, types.MethodType):
        yield from _parts((value.__func__, value.__self__), seen)
    elif isinstance(value, nn.Module):
        yield from (_shown(value), weights_hash(value.state_dict()))
        yield from _own_module_parts(value, seen)
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
    """Return the constants that a function reads, and the functions and classes of its own module."""
    known = function.__globals__
    found = {}
    for name in sorted(_global_names(function.__code__) & known.keys()):
        value = known[name]
        if isinstance(value, types.FunctionType | type):
            is_counted = value.__module__ == function.__module__
        else:
            is_counted = _is_hashed(value)
        if is_counted:
            found[name] = value
    return found


@functools.lru_cache(maxsize=4096)
def _global_names(code: types.CodeType) -> frozenset[str]:
    """Return the global names that a function reads; `co_names` has those of attributes, too."""
    found = {each.argval for each in dis.get_instructions(code) if each.opname in _READS_GLOBAL}
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return frozenset(found).union(*map(_global_names, inner))


def _members(kind: type) -> dict[str, Any]:
    found = {}
    for name, entry in vars(kind).items():
        entry = inspect.unwrap(getattr(entry, "__func__", getattr(entry, "fget", None) or entry))
        is_special = name.startswith("__") and name.endswith("__")  # `__doc__`, `__annotations__`
        if isinstance(entry, types.FunctionType) or (_is_hashed(entry) and not is_special):
            found[name] = entry
    return found


def _library(module: str | None) -> str | None:
    """Return the library that a module belongs to, if it is one whose version the provenance has."""
    top = (module or "").partition(".")[0]
    return top if top in _LIBRARIES else None


def _is_hashed(entry: Any) -> bool:
    """Return whether an attribute counts: loggers, locks and other objects do not."""
    return isinstance(entry, _HASHED) or is_dataclass(entry)


def _is_of_a_library(value: Any) -> bool:
    builtin = inspect.isroutine(value) and not isinstance(value, types.FunctionType)
    return builtin or inspect.ismodule(value) or _library(getattr(value, "__module__", None)) is not None


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
