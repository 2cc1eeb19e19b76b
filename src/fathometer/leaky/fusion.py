"""Pointwise work on a GPU as one kernel, where torch can compile it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TypeVar

import torch

Function = TypeVar("Function", bound="Callable[..., object]")


def fused(function: Function, device: torch.device) -> Function:
    """The function, compiled if it runs on a GPU and Triton is installed; else as it is."""
    if device.type != "cuda" or find_spec("triton") is None:
        return function
    return torch.compile(function)  # type: ignore[return-value]
