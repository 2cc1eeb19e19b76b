"""The cost of identity of one representation, with and without a ridge. Matrices are `[width, samples]`."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fathometer.leaky.energy import kernel_norm2

IN_THE_IMAGE = 1e-8  # the share of A outside Im σ(A)ᵀ that counts as rounding


def cost_of(a: Tensor, gamma: float = 0.0) -> float:
    """COI = min ‖W‖² over W with Wσ(A) = A, infinite where there is none; COI_γ for γ > 0.

    σ is ReLU, without a row of ones. By singular values, not by a pseudo-inverse: ‖Aσ(A)⁺‖² would be finite,
    and too small, where A does not lie in the image.

    Example:
        >>> a = torch.tensor([[1.0, -1.0], [0.0, 2.0]], dtype=torch.float64)
        >>> round(cost_of(a), 6), cost_of(-a[:, :1])
        (2.25, inf)
    """
    s = a.relu()
    if gamma > 0:
        return kernel_norm2(a, s, gamma).item()
    _, values, right = torch.linalg.svd(s, full_matrices=False)
    kept = values > values.max() * max(s.shape) * torch.finfo(s.dtype).eps
    inside = a @ right[kept].mT
    outside = (a - inside @ right[kept]).norm()
    return float((inside / values[kept]).square().sum()) if outside <= IN_THE_IMAGE * a.norm() else math.inf
