"""Loads files of tensors into a network. Nothing but tensors is ever unpickled."""

from __future__ import annotations

import pickle
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from fathometer.errors import InputError, first_line, import_extra, join_names

Tensors: TypeAlias = dict[str, Tensor]

CONTAINERS = tuple(
    "state_dict model_state_dict model_state model model_ema state_dict_ema ema net network weights "
    "params".split()
)
PREFIXES = ("module.", "_orig_mod.", "model.", "backbone.", "net.", "network.", "encoder.")


def load_weights(module: nn.Module, path: Path) -> None:
    """Load a file into the network; containers and prefixes of its keys are removed as needed.

    The file must hold every weight of the network, in its shape, and nothing else.
    """
    expected = module.state_dict()
    # Prefixes are removed or added so that as many tensors as possible fit the network.
    namings = _namings(read_weights(path), expected)
    tensors = max(namings, key=lambda renamed: _fitting(renamed, expected))
    _check(tensors, expected, path)
    state: Any = OrderedDict(tensors)
    state._metadata = getattr(expected, "_metadata", {})  # MNASNet refuses weights without a version
    module.load_state_dict(state, strict=False)


def read_weights(path: Path) -> Tensors:
    """Read the tensors of a file by name: `.safetensors`, or what `torch.save` wrote."""
    content = _read_safetensors(path) if path.suffix == ".safetensors" else _read_torch(path)
    while isinstance(content, Mapping):
        inner = next((content[c] for c in CONTAINERS if isinstance(content.get(c), Mapping)), None)
        if inner is None:
            break
        content = inner
    if not isinstance(content, Mapping):
        raise InputError(f"{path}: expected a state dict, got {type(content).__name__}")
    tensors = {str(k): v for k, v in content.items() if isinstance(v, Tensor)}
    if not tensors:
        found = join_names(list(map(str, content)), 3)
        raise InputError(f"{path}: expected tensors by name, got {found or 'nothing'}")
    return tensors


def _read_safetensors(path: Path) -> Any:
    safetensors = import_extra("safetensors", "torch", extra="language", purpose="a .safetensors file")
    try:
        return safetensors.torch.load_file(path)
    except (safetensors.SafetensorError, OSError) as error:
        raise InputError(f"{path}: not a readable safetensors file ({first_line(error)})") from error


def _read_torch(path: Path) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if "GLOBAL" in str(error):
            raise InputError(
                f"{path}: holds Python objects, not only tensors, and those are not unpickled; "
                "save model.state_dict() instead"
            ) from error
        raise InputError(f"{path}: not a file that torch.save wrote") from error
    except Exception as error:  # a broken file can fail in any layer of torch.load
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise InputError(f"{path}: not a readable file of weights ({reason})") from error


def _namings(tensors: Tensors, expected: Tensors) -> list[Tensors]:
    """List the names to try: as in the file, without prefixes, and with one that the network has."""
    found = [tensors]
    for naming in found:  # the list grows meanwhile
        for prefix in PREFIXES:
            if any(k.startswith(prefix) for k in naming):
                found += _distinct({k: k.removeprefix(prefix) for k in naming}, naming)
    heads = dict.fromkeys(k.partition(".")[0] + "." for k in expected)
    for naming in list(found):
        for prefix in heads:
            found += _distinct({k: k if k in expected else prefix + k for k in naming}, naming)
    return found


def _distinct(names: dict[str, str], tensors: Tensors) -> list[Tensors]:
    """Rename the tensors, unless two would get the same name."""
    return [{names[k]: v for k, v in tensors.items()}] if len({*names.values()}) == len(names) else []


def _fitting(tensors: Tensors, expected: Tensors) -> int:
    return sum(k in expected and v.shape == expected[k].shape for k, v in tensors.items())


def _check(tensors: Tensors, expected: Tensors, path: Path) -> None:
    given = {expected[k].data_ptr() for k in tensors if k in expected}
    missing = [
        k
        for k, v in expected.items()
        if k not in tensors
        and not k.endswith("num_batches_tracked")  # only training reads it, and older files lack it
        and not (v.numel() and v.data_ptr() in given)  # tied to one that is there
    ]
    unexpected = [k for k in tensors if k not in expected]
    wrong_shape = [
        f"{k} {tuple(v.shape)} instead of {tuple(expected[k].shape)}"
        for k, v in tensors.items()
        if k in expected and v.shape != expected[k].shape
    ]
    problems = [
        f"{len(keys)} {what}: {join_names(keys, 3)}"
        for what, keys in (
            ("missing", missing),
            ("unexpected", unexpected),
            ("of another shape", wrong_shape),
        )
        if keys
    ]
    if problems:
        raise InputError(
            f"{path}: does not fit the network, which has {len(expected)} tensors; " + "; ".join(problems)
        )
