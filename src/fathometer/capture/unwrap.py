"""From what a user holds to the plain module whose calls can be seen."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from types import FunctionType
from typing import Any, cast

import torch
from torch import nn

from fathometer.capture.functions import intercepted
from fathometer.errors import InputError

_WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod"}
_SHARDED = {"FullyShardedDataParallel", "FSDPModule"}


def unwrapped(model: nn.Module) -> nn.Module:
    """The network inside `torch.compile`, `DistributedDataParallel` and `DataParallel`.

    Scripted and sharded networks are refused: the calls inside them cannot be seen.
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"model: expected a torch.nn.Module, got {type(model).__name__}{_hint(model)}")
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


def _hint(given: object) -> str:
    if isinstance(given, str):
        return "; fathometer.models.load_model loads by name"
    return "; call it" if callable(given) else ""


@contextmanager
def eager() -> Iterator[None]:
    """Compiled parts and functions run as they were written, also what is compiled in the meantime.

    What compiles takes a second to import, so nothing is done before something is compiled.
    """
    is_eager = "torch._dynamo" in sys.modules
    with ExitStack() as stack:

        def compiling(original: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            nonlocal is_eager
            if not is_eager:
                is_eager = True
                stack.enter_context(_eager_from_now())
            return original(*args, **kwargs)

        before = _eager_from_now() if is_eager else nullcontext()
        with before, intercepted(cast("FunctionType", torch.compile), compiling):
            yield


@contextmanager
def _eager_from_now() -> Iterator[None]:
    """May end after a `with` of the user's that it began in: it takes back what it did and nothing else."""
    filters = cast("list[Any]", warnings.filters)
    warnings.filterwarnings("ignore", ".*torch.compile.*global hooks", UserWarning)
    ignored = filters[0]
    try:
        with torch.compiler.set_stance("force_eager"):
            yield
    finally:
        if ignored in warnings.filters:
            cast("list[Any]", warnings.filters).remove(ignored)
