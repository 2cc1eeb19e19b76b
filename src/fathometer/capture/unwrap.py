"""From what a user holds to the plain module whose calls can be seen."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import torch
from torch import nn

from fathometer.errors import InputError

_WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod"}
_SHARDED = {"FullyShardedDataParallel", "FSDPModule"}


def unwrapped(model: nn.Module) -> nn.Module:
    """The network inside `torch.compile`, `DistributedDataParallel` and `DataParallel`.

    Scripted and sharded networks are refused: the calls inside them cannot be seen.
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"model: expected a torch.nn.Module, got {type(model).__name__}")
    while (inner := _WRAPPERS.get(type(model).__name__)) and isinstance(
        getattr(model, inner, None), nn.Module
    ):
        model = cast("nn.Module", getattr(model, inner))
    for path, module in model.named_modules():
        where = f"module {path!r}" if path else "the network"
        if isinstance(module, torch.jit.ScriptModule):
            raise InputError(
                f"model: {where} is a ScriptModule, whose calls cannot be seen; "
                "pass the network as it was before torch.jit"
            )
        if any(kind.__name__ in _SHARDED for kind in type(module).__mro__):
            raise InputError(
                f"model: {where} is sharded (FSDP), so that no process holds it; "
                "load the full state dict into the plain network and pass that"
            )
    return model


@contextmanager
def eager() -> Iterator[None]:
    """Compiled parts and functions run as they were written; nothing is done where nothing was compiled."""
    if "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*torch.compile.*global hooks", UserWarning)
        yield
