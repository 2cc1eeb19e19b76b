"""What a watch could leave behind in a network, in torch or in the process."""

from __future__ import annotations

import random
import sys
import threading
import types
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._functorch import vmap
from torch.nn.modules import module as module_file
from torch.nn.parameter import is_lazy
from torch.utils import _python_dispatch

_NAMESPACES = (
    torch,
    nn.functional,
    torch.special,
    torch.func,
    torch._C._nn,
    Tensor,
    torch._C.TensorBase,
    nn.Module,
    vmap,
)
_CACHES = ("__abstractmethods__", "__annotations__", "__doc__")  # made when they are asked for
_MISSING = object()


def network_state(network: nn.Module) -> dict[str, Any]:
    """Describe a network by value: classes, attributes, hooks and flags of modules, versions of tensors.

    Two networks that were built and run alike have the same state.
    """
    modules = {path or "the network": module for path, module in network.named_modules()}
    return {
        path: {"class": type(module).__qualname__}
        | {n: _described(v, set()) for n, v in vars(module).items()}
        for path, module in modules.items()
    }


class World:
    """Everything outside the network: functions by identity, hooks, modes, threads."""

    def __init__(self, network: nn.Module) -> None:
        classes = {kind for module in network.modules() for kind in type(module).__mro__}
        self._owners: list[Any] = [*_NAMESPACES, *classes]
        self._before = self._now()

    def changes(self) -> list[str]:
        """Name what has changed since this object was made."""
        return differences(self._before, self._now())

    def _now(self) -> dict[str, Any]:
        state: dict[str, Any] = {}
        for owner in self._owners:
            members = dict(vars(owner))
            state[owner.__name__] = {
                name: id(value) for name, value in members.items() if name not in _CACHES
            }
            state[f"code of {owner.__name__}"] = {
                name: id(value.__code__)
                for name, value in members.items()
                if isinstance(value, types.FunctionType)
            }
        state["hooks on all modules"] = {
            name: list(value)
            for name, value in vars(module_file).items()
            if name.startswith("_global_") and isinstance(value, dict)
        }
        return state | {
            "function modes": torch._C._len_torch_function_stack(),
            "functions are overridable": torch._C._is_torch_function_enabled(),
            "dispatch modes": len(_python_dispatch._get_current_dispatch_mode_stack()),
            "no transforms": torch._C._functorch.peek_interpreter_stack() is None,
            "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
            "autocast": (torch.is_autocast_enabled("cpu"), torch.is_autocast_cache_enabled()),
            "defaults": (torch.get_default_dtype(), torch.get_default_device()),
            "stance": getattr(sys.modules.get("torch._dynamo.eval_frame"), "_stance", None),
            "warnings": len(warnings.filters),
            "tracing": (sys.gettrace(), sys.getprofile()),
            "threads": threading.active_count(),
        }


def random_state() -> int:
    """One number for the generators of torch, NumPy and Python."""
    numpy = np.random.get_state()[1].tobytes()  # type: ignore[index]  # noqa: NPY002
    return hash((torch.get_rng_state().numpy().tobytes(), numpy, random.getstate()))


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The names under which two states differ, down to the member that does."""
    found = []
    for name in dict.fromkeys((*before, *after)):
        one, other = before.get(name, _MISSING), after.get(name, _MISSING)
        if isinstance(one, dict) and isinstance(other, dict):
            found += [f"{name}.{inner}" for inner in differences(one, other)]
        elif one is not other and one != other:
            found.append(name)
    return found


def _described(value: Any, within: set[int]) -> Any:
    """By value, without identities."""
    if is_lazy(value):
        return "no tensor yet"
    if isinstance(value, Tensor):
        version = None if value.is_inference() else value._version
        return "tensor", tuple(value.shape), value.dtype, value.requires_grad, version, sorted(vars(value))
    if isinstance(value, str | bytes | int | float | bool | type(None) | torch.dtype | torch.device):
        return value
    if isinstance(value, types.FunctionType | types.MethodType | type):
        return value.__module__, value.__qualname__
    if id(value) in within or isinstance(value, nn.Module | types.ModuleType):
        return type(value).__qualname__
    within = within | {id(value)}
    if isinstance(value, Mapping):
        return type(value).__qualname__, [
            (_key(key), _described(item, within)) for key, item in list(value.items())
        ]
    if isinstance(value, list | tuple):
        return type(value).__qualname__, [_described(item, within) for item in value]
    return type(value).__qualname__, sorted(vars(value)) if hasattr(value, "__dict__") else None


def _key(key: Any) -> Any:
    """Hooks go by numbers that no two of them share."""
    return "number" if isinstance(key, int) else str(key)
