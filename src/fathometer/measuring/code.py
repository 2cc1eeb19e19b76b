"""A hash of a function or class that changes when what it computes may change."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from fathometer.results.provenance import tensor_hash

_LIBRARIES = ("torch", "torchvision", "timm", "transformers", "numpy", "scipy", "fathometer", "builtins")
_PLAIN = (str, bytes, bool, int, float, complex, type(None))


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
    digest = hashlib.sha256(without_addresses(repr(network)).encode())
    classes = {type(module) for module in network.modules()}
    own = [kind for kind in classes if _library(kind.__module__) is None]
    for kind in sorted(own, key=lambda kind: (kind.__module__, kind.__qualname__)):
        digest.update(code_hash(kind.forward).encode())
    return digest.hexdigest()


def without_addresses(text: str) -> str:
    """Return a `repr` without the addresses in memory, which differ from run to run.

    Example:
        >>> without_addresses("<function resize at 0x7f31a8c0>")
        '<function resize>'
    """
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


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
        yield from _parts((type(value), getattr(value, "__dict__", {})), seen)


def _used_globals(function: types.FunctionType) -> dict[str, Any]:
    """Return the constants, functions and classes of its own module that a function names."""
    names = set(_names(function.__code__))
    found = {name: value for name, value in function.__globals__.items() if name in names}
    return {
        name: value
        for name, value in sorted(found.items())
        if isinstance(value, (*_PLAIN, tuple, list))
        or (
            isinstance(value, types.FunctionType | type)
            and getattr(value, "__module__", None) == function.__module__
        )
    }


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


def _is_of_a_library(value: Any) -> bool:
    builtin = inspect.isroutine(value) and not isinstance(value, types.FunctionType)
    return builtin or inspect.ismodule(value) or _library(getattr(value, "__module__", None)) is not None


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
