"""Tensors inside `torch.vmap` and `torch.func.grad`, which wrap them: one sample stands for all."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor
from torch._C import _functorch


def is_wrapped(tensor: Tensor) -> bool:
    """Whether a transform of `torch.func` is at work on it."""
    return bool(_functorch.is_functorch_wrapped_tensor(tensor))


def beneath(tensor: Tensor) -> Tensor:
    """The tensor that holds the numbers, with the axes that `vmap` took away in front.

    Example:
        >>> import torch
        >>> shapes = []
        >>> def one(x):
        ...     shapes.extend([tuple(x.shape), tuple(beneath(x).shape)])
        ...     return x
        >>> _ = torch.vmap(one, in_dims=1)(torch.zeros(5, 3))
        >>> shapes
        [(5,), (3, 5)]
    """
    taken = []
    while is_wrapped(tensor):
        axis = _functorch.maybe_get_bdim(tensor)  # among those that the transforms below have left
        taken += [axis] if axis >= 0 else []
        tensor = _functorch.get_unwrapped(tensor)
    rest = list(range(tensor.ndim))
    front = [rest.pop(axis) for axis in reversed(taken)]
    return tensor.permute(front + rest) if front else tensor


def outside() -> AbstractContextManager[Any]:
    """Inside, operators are computed as they are, whatever transform is under way."""
    if _functorch.peek_interpreter_stack() is None:
        return nullcontext()
    from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

    return temporarily_clear_interpreter_stack()
