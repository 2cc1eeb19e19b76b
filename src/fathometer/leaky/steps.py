"""Layer steps ρ_1 … ρ_L, which sum to 1: how far along the path p ∈ [0, 1] each layer goes (section 3).

Steps are `[layers]`, float64.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fathometer.errors import InputError, as_float, check_whole

DAMPING = 0.2  # the exponent of an adaptive update; a full one oscillates
_ROUNDING = 1e-12  # a sum this close to 1 is rounding, and the steps stay as they are


def equidistant(layers: int) -> Tensor:
    """Make steps ρ_l = 1/L.

    Example:
        >>> equidistant(4).tolist()
        [0.25, 0.25, 0.25, 0.25]
    """
    layers = check_whole("layers", layers, 1)
    return torch.full((layers,), 1 / layers, dtype=torch.float64)


def irregular(layers: int, a: float = 0.5) -> Tensor:
    """Make steps ρ_l = 1/L + a/L (1/4 − |l/L − 1/2|): short near both ends, long between.

    The paper's formula sums to 1 for even L and to 1 − a/(4L²) for odd L; it is divided by its sum.

    Args:
        layers: L.
        a: from 0 (equidistant) to below 1.

    Example:
        >>> [round(step, 4) for step in irregular(4, 0.8).tolist()]
        [0.25, 0.3, 0.25, 0.2]
    """
    layers = check_whole("layers", layers, 1)
    number = as_float(a)
    if not 0 <= number < 1:
        raise InputError(f"expected a number in [0, 1), got {a!r}", parameter="irregularity")
    place = torch.arange(1, layers + 1, dtype=torch.float64) / layers
    steps = (1 + number * (0.25 - (place - 0.5).abs())) / layers
    return steps / steps.sum()


def custom_steps(steps: Sequence[float] | Tensor) -> Tensor:
    """Take your own steps, which must be positive and have the sum 1.

    Example:
        >>> custom_steps([0.2, 0.3, 0.5]).tolist()
        [0.2, 0.3, 0.5]
    """
    try:
        found = torch.as_tensor(steps, dtype=torch.float64, device="cpu").detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"expected positive numbers, one for each layer, got {steps!r}", parameter="steps"
        ) from error
    if found.ndim != 1 or not len(found) or not bool((found > 0).all()):
        raise InputError(
            f"expected positive numbers, one for each layer, got {found.tolist()}", parameter="steps"
        )
    total = found.sum().item()
    if not abs(total - 1) <= 1e-6:
        raise InputError(f"expected the sum 1, got {total:.6g}; divide by it", parameter="steps")
    return found if abs(total - 1) <= _ROUNDING else found / total


def as_steps(steps: Sequence[float] | Tensor | int) -> Tensor:
    """Take your own steps, or a number of equidistant ones.

    Example:
        >>> as_steps(2).tolist(), as_steps([0.2, 0.8]).tolist()
        ([0.5, 0.5], [0.2, 0.8])
    """
    if isinstance(steps, int | np.integer):
        return equidistant(check_whole("steps", steps, 1))
    return custom_steps(steps)


def rebalanced(steps: Tensor, moves: Tensor, damping: float = DAMPING) -> Tensor:
    """Make one adaptive update, towards equal moves ‖A_l − A_{l−1}‖ / ‖A_l‖ in all layers.

    The paper's ρ_l ∝ c_l⁻¹ with c_l = move_l / ρ_l is a fixed-point step. ρ_l ∝ ρ_l · move_l^(−damping) has
    the same fixed point and converges; with `damping` 1 it is the paper's. Steps and moves: `[..., layers]`.

    Example:
        >>> rebalanced(equidistant(2), torch.tensor([1.0, 3.0], dtype=torch.float64), 1.0).tolist()
        [0.75, 0.25]
    """
    tiny = torch.finfo(moves.dtype).tiny
    updated = steps * moves.clamp(min=tiny).to(steps.dtype).pow(-damping)
    return updated / updated.sum(-1, keepdim=True)


def places(steps: Tensor) -> Tensor:
    """Compute p_0 = 0, p_1, …, p_L = 1, the places of the representations."""
    return torch.cat([torch.zeros_like(steps[..., :1]), steps.cumsum(-1)], -1)


def longest_step(steps: Tensor, effective_depth: float) -> float:
    """Compute the largest ρ_l L̃: from 1 on, the factor 1 − ρ_l L̃ of A_{l−1} is not positive."""
    return steps.max().item() * effective_depth


def warn_of_long_steps(steps: Tensor, effective_depth: float) -> None:
    """Warn if some ρ_l L̃ ≥ 1."""
    largest = longest_step(steps, effective_depth)
    if largest >= 1:
        warnings.warn(
            f"a step has ρL̃ = {largest:.3g} ≥ 1: the layer reverses the sign of what it leaks (1 − ρL̃ ≤ 0), "
            "and the path need not follow the differential equation; use at least "
            f"{int(effective_depth) + 1} equidistant layers",
            stacklevel=3,
        )
