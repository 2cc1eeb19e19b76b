"""Compute for a watch without being seen by it, and let fused layers run as they do without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import torch
from torch import nn
from torch._C import _functorch

_FUSED = (nn.TransformerEncoder.forward, nn.TransformerEncoderLayer.forward)


def hidden(*, gradients: bool) -> AbstractContextManager[None]:
    """Compute unseen by a watch, outside of `torch.func`, with a graph only if asked for."""
    if torch.is_grad_enabled() or _functorch.peek_interpreter_stack() is not None:
        return _hidden_from_autograd(gradients)
    return torch._C.DisableTorchFunction()  # the usual case, by the cheapest of all contexts


@contextmanager
def _hidden_from_autograd(gradients: bool) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(torch._C.DisableTorchFunction())
        stack.enter_context(torch.set_grad_enabled(gradients and torch.is_grad_enabled()))
        if _functorch.peek_interpreter_stack() is not None:
            from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

            stack.enter_context(temporarily_clear_interpreter_stack())
        yield


def is_fused(module: nn.Module) -> bool:
    """Tell whether a layer may hide its activation in one kernel; not a subclass with another `forward`."""
    return type(module).forward in _FUSED


@contextmanager
def hooks_hidden(module: nn.Module, owner: type) -> Iterator[None]:
    """Take away the hooks that are methods of `owner`: with hooks, a fused layer does not use its kernel."""
    all_hooks = [
        hooks for part in module.modules() for hooks in (part._forward_pre_hooks, part._forward_hooks)
    ]
    before = [dict(hooks) for hooks in all_hooks]
    for hooks, kept in zip(all_hooks, before, strict=True):
        for key, hook in kept.items():
            if isinstance(getattr(hook, "__self__", None), owner):
                del hooks[key]
    try:
        yield
    finally:
        for hooks, kept in zip(all_hooks, before, strict=True):
            hooks.clear()
            hooks.update(kept)
