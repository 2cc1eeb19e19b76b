"""The orthogonal polar factor by matrix products alone, for devices that are fast at nothing else."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_MAX_STEPS = 60


def polar_factor(g: Tensor, smallest: Tensor) -> Tensor:
    """U of the polar decomposition G = U P, P = (GᵀG)^½, as far as the iteration finds it.

    Newton-Schulz iteration U ← ½ ρ U (3I − ρ² UᵀU), with the scaling ρ² = 3 / (1 + ℓ + ℓ²) that is
    optimal among cubics when all singular values lie in [ℓ, 1] (Chen and Chow, 2014): small ones
    grow by 2.6 a step rather than 1.5. With ℓ known beforehand the steps are counted on the host
    and the device never waits. Rounding may leave U far off where G is nearly singular: check what
    it is used for.

    Args:
        g: square matrices `[batch, d, d]`.
        smallest: a lower bound, `[batch]`, on their singular values.
    """
    largest = torch.minimum(
        torch.linalg.matrix_norm(g),
        (torch.linalg.matrix_norm(g, 1) * torch.linalg.matrix_norm(g, math.inf)).sqrt(),
    )
    u = g / largest[:, None, None]
    for a, b in _steps(float((smallest / largest).min())):
        u = torch.baddbmm(u, u, u.mT @ u, beta=a, alpha=b)
    return u


def _steps(low: float) -> list[tuple[float, float]]:
    """(a, b) of each step U ← a U + b U UᵀU that takes singular values in [low, 1] to 1."""
    steps: list[tuple[float, float]] = []
    while low < 1 - 1e-8 and len(steps) < _MAX_STEPS:
        rho = math.sqrt(3 / (1 + low + low * low))
        a, b = 1.5 * rho, -0.5 * rho**3
        steps.append((a, b))
        low = low * (a + b * low * low)
    return [*steps, (1.5, -0.5)]  # once more: the error of 1e-8 is squared
