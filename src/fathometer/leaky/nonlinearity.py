"""σ: any elementwise function of torch, by name, or one of your own that was registered; σ' by autograd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import torch
from torch import Tensor

from fathometer.capture.sites import OPERATORS, function_of
from fathometer.errors import InputError

Elementwise: TypeAlias = "Callable[[Tensor], Tensor]"

_SCALES = (0.25, 3.0)  # values of c for which σ(ca) = cσ(a) is tried


@dataclass(frozen=True, eq=False)
class Nonlinearity:
    """An elementwise function σ.

    Attributes:
        name: its name.
        function: a ↦ σ(a).
        slope: a ↦ σ'(a).
        homogeneous: whether σ(ca) = cσ(a) for all c > 0, as ReLU, leaky ReLU and the identity.
    """

    name: str
    function: Elementwise
    slope: Elementwise
    homogeneous: bool


_SLOPES: dict[str, Elementwise] = {
    "relu": lambda a: (a > 0).to(a.dtype),
    "softplus": torch.sigmoid,
    "identity": torch.ones_like,
}
"""Where the slope is known it takes less time than autograd."""
_REGISTERED: dict[str, Elementwise] = {"identity": lambda a: a}


def register_sigma(name: str, function: Elementwise) -> None:
    """Make a function of your own available as σ, by a name.

    Designs and files of sweeps hold the name alone: register it before such a file is read. σ' is computed by
    autograd.

    Example:
        >>> register_sigma("cubed_relu", lambda a: a.relu() ** 3)
        >>> nonlinearity("cubed_relu").slope(torch.tensor([-1.0, 3.0])).tolist()
        [0.0, 27.0]
    """
    known = _REGISTERED.get(name)
    if (known or _of_torch(name)) not in (None, function):
        raise InputError(f"{name!r} is another function already; use another name", parameter="name")
    _checked(name, function)
    _REGISTERED[name] = function


@cache
def nonlinearity(name: str) -> Nonlinearity:
    """Look up σ: `identity` (linear networks), an elementwise function of torch, or a registered one.

    Example:
        >>> nonlinearity("relu").homogeneous, nonlinearity("gelu").homogeneous
        (True, False)
    """
    function = _REGISTERED.get(name) or _of_torch(name) if isinstance(name, str) else None
    if function is None:
        raise InputError(
            f"expected identity, an elementwise function of torch such as relu, softplus or gelu, or one "
            f"given to register_sigma, got {name!r}",
            parameter="sigma",
        )
    values = _checked(name, function)
    tried = _values()
    homogeneous = all(torch.allclose(function(c * tried), c * values, rtol=1e-12, atol=0) for c in _SCALES)
    return Nonlinearity(name, function, _SLOPES.get(name) or _slope_of(function), homogeneous)


def _of_torch(name: str) -> Elementwise | None:
    """Return an elementwise function of torch of one argument, or None; no other function is called."""
    if name in OPERATORS - {"prelu", "threshold", "rrelu"}:  # two need more arguments, one is random
        return function_of(name)
    operator = getattr(getattr(torch.ops.aten, name, None), "default", None)
    if operator is None or name.endswith("_") or torch.Tag.pointwise not in operator.tags:
        return None
    required = [each for each in operator._schema.arguments if not each.has_default_value()]
    random = torch.Tag.nondeterministic_seeded in operator.tags
    return operator if len(required) == 1 and not random else None


def _slope_of(function: Elementwise) -> Elementwise:
    def slope(a: Tensor) -> Tensor:
        with torch.enable_grad():
            at = a.detach().requires_grad_()
            image = function(at)
            if not image.requires_grad:  # as that of a step function
                return torch.zeros_like(a)
            (found,) = torch.autograd.grad(image.sum(), at)
        return found

    return slope


def _values() -> Tensor:
    return torch.linspace(-2.1, 2.3, 12, dtype=torch.float64).view(3, 4)


def _checked(name: str, function: Elementwise) -> Tensor:
    """Return σ of some numbers; refuse a function that is not elementwise, finite and of torch."""
    numbers = _values()
    try:
        values = function(numbers.clone())
        alone = [function(number[None]).item() for number in numbers.flatten()]
        found = torch.tensor(alone, dtype=torch.float64).view(3, 4)
    except Exception as error:  # the user's function raises anything
        raise InputError(f"{name} cannot be applied to numbers: {error}", parameter="sigma") from error
    same = isinstance(values, Tensor) and values.shape == numbers.shape and values.dtype == numbers.dtype
    if not (same and bool(values.isfinite().all()) and torch.allclose(values, found, rtol=1e-12)):
        raise InputError(
            f"{name} is not an elementwise function with finite values for all numbers; use another",
            parameter="sigma",
        )
    return values
