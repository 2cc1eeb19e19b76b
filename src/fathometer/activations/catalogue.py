"""Find an activation function by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn

from fathometer.errors import InputError, did_you_mean

Activation: TypeAlias = Callable[[Tensor], Tensor]

PAPER_ACTIVATIONS = (
    "Sigmoid",
    "ReLU",
    "GELU",
    "ReLU6",
    "LeakyReLU",
    "Tanh",
    "Hardtanh",
    "SiLU",
    "Hardswish",
)


def activation(name: str) -> Activation:
    """Return the activation of `torch.nn` with that name, in any case, with its default arguments.

    Example:
        >>> import torch
        >>> activation("relu6")(torch.tensor([-1.0, 9.0]))
        tensor([0., 6.])
    """
    return _as_function(_find(name))


def activations(names: Sequence[str]) -> dict[str, Activation]:
    """Return each distinct name, as torch.nn spells it, with its function."""
    names = [names] if isinstance(names, str) else list(names)
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"expected one or more names of activations, such as ReLU, got {names}")
    return {found.__name__: _as_function(found) for found in map(_find, names)}


def _find(name: str) -> type[nn.Module]:
    """Return the class of that name, in any case."""
    module = nn.modules.activation
    every = {each: getattr(module, each) for each in module.__all__}
    known = {each.lower(): kind for each, kind in every.items() if issubclass(kind, nn.Module)}
    if name.lower() not in known:
        hint = did_you_mean(name, [kind.__name__ for kind in known.values()]) or "expected e.g. ReLU or GELU"
        raise InputError(f"torch.nn has no activation {name!r}; {hint}")
    return known[name.lower()]


def _as_function(found: type[nn.Module]) -> Activation:
    """Return the activation with its default arguments; refuse a module that is none."""
    takes_dim = "dim" in inspect.signature(found).parameters
    try:
        module = found(dim=-1) if takes_dim else found()
        module = module.to(torch.float64).eval()
        probe = torch.linspace(-1, 1, 8, dtype=torch.float64).reshape(2, 4)
        if module(probe).shape != probe.shape:
            raise ValueError("its output has another shape than its input")
    except Exception as error:  # a module of torch.nn that is not an activation
        raise InputError(
            f"expected an activation that needs no arguments, got torch.nn.{found.__name__}: {error}"
        ) from error

    @torch.no_grad()
    def apply(x: Tensor) -> Tensor:
        result: Tensor = module.to(x.device)(x)
        return result

    return apply
