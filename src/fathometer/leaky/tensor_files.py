"""Tensors and plain facts in one safetensors file. Nothing in it is ever executed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from fathometer.errors import InputError, MissingExtraError
from fathometer.results.files import complete_file


class TensorFile(NamedTuple):
    """What a file holds."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], *, durable: bool = False
) -> None:
    """Write a file; it appears once it is complete, and with `durable` outlives a loss of power."""
    _, torch_format = _safetensors()
    with complete_file(path, durable=durable) as part:
        whole = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
        part.write_bytes(torch_format.save(whole, metadata={"facts": json.dumps(facts)}))


def read_tensors(path: Path, kinds: Mapping[str, type | tuple[type, ...]]) -> TensorFile:
    """Read a file, whose facts must be of these kinds."""
    safetensors, _ = _safetensors()
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            # Not by `strict_json`: where a training is about to diverge, its criticality may be a NaN.
            facts = json.loads((file.metadata() or {})["facts"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (KeyError, ValueError, RecursionError, safetensors.SafetensorError) as error:
        raise InputError(f"{path}: broken, or not of a sweep ({error})") from error
    for name, kind in kinds.items():
        value = facts.get(name) if isinstance(facts, dict) else None
        if not isinstance(facts, dict) or name not in facts or not isinstance(value, kind):
            raise InputError(f"{path}: broken, or not of a sweep ({name} is {value!r})")
    return TensorFile(tensors, facts)


def _safetensors() -> tuple[Any, Any]:
    try:
        import safetensors
        import safetensors.torch
    except ImportError as error:
        raise MissingExtraError("safetensors", "leaky", "a folder of trained networks") from error
    return safetensors, safetensors.torch
