"""The σ of a Leaky ResNet, entry by entry, with its slope. The row of ones for the bias is `with_ones`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from fathometer.errors import InputError


class Nonlinearity(NamedTuple):
    """An increasing function, and its slope as a function of its *output*: the input need not be kept."""

    name: str
    function: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]


NONLINEARITIES = {
    "relu": Nonlinearity("relu", torch.relu, lambda s: (s > 0).to(s.dtype)),
    "softplus": Nonlinearity("softplus", torch.nn.functional.softplus, lambda s: -torch.expm1(-s)),
    "identity": Nonlinearity("identity", lambda a: a, torch.ones_like),
}


def nonlinearity(name: str) -> Nonlinearity:
    """`relu`, `softplus` (smooth: for checks) or `identity` (linear networks)."""
    if name not in NONLINEARITIES:
        raise InputError(f"nonlinearity: expected one of {', '.join(NONLINEARITIES)}, got {name!r}")
    return NONLINEARITIES[name]


def with_ones(s: Tensor) -> Tensor:
    """`[..., width, samples]` with a row of ones below, which the last column of W makes a bias."""
    return torch.cat([s, torch.ones_like(s[..., :1, :])], -2)
