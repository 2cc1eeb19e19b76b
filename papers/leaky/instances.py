"""Matrices, paths and curves that need no training: drawn, solved for, or followed along the flow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from fathometer.leaky import Flow, RepresentationPath, flow
from fathometer.leaky.theory import solved_path

START_DEPTH = 2.0  # L̃ of solved networks and of the flow
SHAPE = (6, 10)  # of their A: w and N


def drawn(seed: int, *shape: int, scale: float = 1.0) -> Tensor:
    """Draw normal numbers."""
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def drawn_matrices(shapes: Iterable[tuple[int, int]], draws: int) -> Iterator[tuple[str, Tensor]]:
    """Draw several matrices of each shape, with names."""
    for width, samples in shapes:
        for seed in range(draws):
            yield f"{width} × {samples}, seed {seed}", drawn(seed, width, samples)


def cost_and_gradient(a: Tensor) -> tuple[Tensor, Tensor]:
    """Compute COI = Tr[AᵀAK⁻¹] and its gradient 2AK⁻¹ − 2σ'(A) ⊙ (σ(A)K⁻¹AᵀAK⁻¹), for regular K.

    A is `[..., width, samples]`.

    Example:
        >>> cost, gradient = cost_and_gradient(torch.tensor([[1.0, -1.0], [0.0, 2.0]]))
        >>> cost.item(), gradient.tolist()
        (2.25, [[0.0, -0.5], [0.0, -0.25]])
    """
    s, k = a.relu(), a.mT @ a
    inverse = torch.linalg.inv(s.mT @ s)
    return (inverse * k).sum((-2, -1)), 2 * a @ inverse - 2 * (a > 0) * (s @ inverse @ k @ inverse)


def solved(layers: int, seed: int = 0) -> RepresentationPath:
    """Solve for a network with w = 6, N = 10 and L̃ = 2 that is critical to rounding."""
    return solved_path(*_start(seed), START_DEPTH, layers)


def followed(steps: int, seed: int = 0, tolerance: float = 1e-10) -> Flow:
    """Follow the flow from the same start; return it at `steps` places."""
    return flow(*_start(seed), START_DEPTH, steps=steps, tolerance=tolerance)


def _start(seed: int) -> tuple[Tensor, Tensor]:
    return drawn(2 * seed, *SHAPE), drawn(2 * seed + 1, *SHAPE, scale=0.1)


def bias_growth(found: Flow) -> Tensor:
    """Integrate L̃‖b‖² from 0 to each place of a flow, by the trapezoidal rule."""
    bias = found.weights[..., -1].square().sum(1)
    pieces = found.path.steps * (bias[1:] + bias[:-1]) / 2
    return found.path.effective_depth * torch.cat([torch.zeros_like(pieces[:1]), pieces.cumsum(0)])


def growth_factor(found: Flow) -> float:
    """Compute (‖W_1‖² − ‖W_0‖²) / (L̃ ∫‖b‖² dp) of a flow: 1 in the paper's Proposition 9."""
    norms = found.weights.square().sum((1, 2))
    return ((norms[-1] - norms[0]) / bias_growth(found)[-1]).item()


class SmoothCurve:
    """A smooth curve of matrices of rank 2, 4 × 5, with a detour of any size between the same ends.

    A_p = (U₀ + sin p · U₁ + detour · sin πp · U₂)(V₀ + p² V₁).
    """

    def __init__(self, seed: int = 0, detour: float = 0.0) -> None:
        self._left = [drawn(5 * seed, 4, 2), drawn(5 * seed + 1, 4, 2), drawn(5 * seed + 4, 4, 2)]
        self._right = [drawn(5 * seed + 2, 2, 5), drawn(5 * seed + 3, 2, 5)]
        self._detour = detour

    def at(self, p: float) -> Tensor:
        """Compute A_p."""
        return self._u(p) @ self._v(p)

    def velocity(self, p: float) -> Tensor:
        """Compute ∂_pA_p."""
        _, second, third = self._left
        turn = math.cos(p) * second + self._detour * math.pi * math.cos(math.pi * p) * third
        return turn @ self._v(p) + self._u(p) @ (2 * p * self._right[1])

    def _u(self, p: float) -> Tensor:
        first, second, third = self._left
        return first + math.sin(p) * second + self._detour * math.sin(math.pi * p) * third

    def _v(self, p: float) -> Tensor:
        return self._right[0] + p * p * self._right[1]
