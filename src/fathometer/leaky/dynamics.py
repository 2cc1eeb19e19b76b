"""Critical paths without training, from A_0 and B_0: of the differential equations, and of a network.

A and B are `[width, samples]`, float64; L̃ is the effective depth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from fathometer.errors import InputError, NumericalError
from fathometer.leaky.energy import hamiltonian, require_depth
from fathometer.leaky.model import next_layer, with_ones
from fathometer.leaky.nonlinearity import Nonlinearity, nonlinearity
from fathometer.leaky.path import RepresentationPath
from fathometer.leaky.steps import as_steps, places

DIVERGED = 1e12  # times the size of the start: H, of fourth order, has no digits left
MAX_EVALUATIONS = 200_000
MAX_ROUNDS = 500  # of the iteration in one layer of `solved_path`
SOLVED, GOOD_ENOUGH = 1e-15, 1e-12  # relative changes in its last round

_DIVERGED = (
    "the flow diverges, or turns too fast to follow, at p = {:.3g}; use smaller momenta, a smaller effective "
    "depth, or a larger tolerance"
)


@dataclass(frozen=True, eq=False, repr=False)
class Flow:
    """A solution of the Hamiltonian dynamics at p_0 = 0 … p_L = 1.

    Attributes:
        path: A and B at these places; its weights are W_p = L̃ B_p σ(A_p)ᵀ at the start of each step. It is
            not the path of a network with L layers: that has B at the *end* of a step in its weights, so
            the staggered Hamiltonian and `criticality` of this path are off by O(ρ).
        weights: W_p at all places, `[layers + 1, width, width + 1]`.
        hamiltonian: H at all places, `[layers + 1]`.
        drift: the largest |H_p − H_0| / |H_0|, not relative where H_0 = 0.
        evaluations: number of evaluations of the right-hand side.
    """

    path: RepresentationPath
    weights: Tensor
    hamiltonian: Tensor
    drift: float
    evaluations: int

    def __repr__(self) -> str:
        return f"Flow({self.path!r}, drift {self.drift:.1e}, {self.evaluations} evaluations)"


def flow(
    a: Tensor,
    b: Tensor,
    effective_depth: float,
    *,
    steps: Tensor | int = 20,
    sigma: str = "relu",
    tolerance: float = 1e-10,
) -> Flow:
    """Follow ∂A = ∂H/∂B and ∂B = −∂H/∂A from A_0 and B_0 to p = 1 (section 1.5); see `velocities`.

    Args:
        a: A_0, `[width, samples]`.
        b: B_0, of the same shape.
        effective_depth: L̃.
        steps: places of the result: ρ, or the number of equidistant steps. They do not change the accuracy.
        sigma: the nonlinearity. A kink, as of `relu`, costs evaluations, and some of the accuracy.
        tolerance: tolerance of each step of SciPy's DOP853, relative to each entry or to the size of the
            start.

    Raises:
        NumericalError: the flow cannot be followed, for example from large momenta: its forces are cubic.

    Example:
        >>> drawn = torch.Generator().manual_seed(0)
        >>> a, b = torch.randn(2, 4, 6, generator=drawn, dtype=torch.float64)
        >>> found = flow(a, b / 10, 2.0, steps=5, sigma="softplus")
        >>> found.path.representations.shape, found.drift < 1e-8
        (torch.Size([6, 4, 6]), True)
    """
    function, rho = nonlinearity(sigma), as_steps(steps)
    depth, start = require_depth(effective_depth), torch.stack(_start(a, b))
    size = start.norm().item() / math.sqrt(start.numel()) or 1.0
    count = 0

    def right(p: float, state: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        nonlocal count
        count += 1
        if count > MAX_EVALUATIONS or not np.abs(state).max() < DIVERGED * size:  # also for NaN
            raise NumericalError(_DIVERGED.format(p))
        a, b = torch.from_numpy(state).view(start.shape)
        return torch.stack(velocities(a, b, function, depth)).view(-1).numpy()

    with np.errstate(over="ignore", invalid="ignore"):  # reported below
        found = solve_ivp(
            right,
            (0.0, 1.0),
            start.reshape(-1).numpy(),
            method="DOP853",
            t_eval=places(rho).clamp(max=1.0).numpy(),  # a sum of steps can exceed 1 by rounding
            rtol=tolerance,
            atol=tolerance * size,
        )
    if not found.success:
        raise NumericalError(_DIVERGED.format(float(found.t[-1])))
    states = torch.from_numpy(np.ascontiguousarray(found.y.T)).view(-1, *start.shape)
    representations, momenta = states[:, 0], states[:, 1]
    weights = depth * momenta @ with_ones(function.function(representations)).mT
    energy = hamiltonian(representations, momenta, function, depth)
    path = RepresentationPath(representations, rho, depth, function, momenta, weights[:-1])
    drift = (energy - energy[0]).abs().max().item() / (energy[0].abs().item() or 1.0)
    return Flow(path, weights, energy, drift, count)


def velocities(a: Tensor, b: Tensor, sigma: Nonlinearity, effective_depth: float) -> tuple[Tensor, Tensor]:
    """Compute ∂A = L̃ (Bσ(A)ᵀσ(A) − A) and ∂B = −L̃ (σ'(A) ⊙ [σ(A)BᵀB] − B), `[..., width, samples]` each.

    The bracket has one more row than A, that of the ones, which do not depend on A: it is dropped.

    Example:
        >>> a, b = torch.tensor([[1.0, -1.0]]), torch.tensor([[2.0, 1.0]])
        >>> velocities(a, b, nonlinearity("relu"), 1.0)
        (tensor([[4., 4.]]), tensor([[-2.,  1.]]))
    """
    ones = with_ones(sigma.function(a))
    pushed = b @ ones.mT
    forward = effective_depth * (pushed @ ones - a)
    backward = -effective_depth * (sigma.slope(a) * (pushed[..., :-1].mT @ b) - b)
    return forward, backward


def solved_path(
    a: Tensor, b: Tensor, effective_depth: float, steps: Tensor | int, sigma: str = "relu"
) -> RepresentationPath:
    """Solve for the path of a network with W_l = L̃ B_l σ(A_{l−1})ᵀ to rounding, from A_0 and B_0.

    It is a critical point of the loss whose target is Y = A_L + λNd/2 · B_L, with identity maps. The momenta
    follow from B_{l−1} = (1 − ρL̃) B_l + ρ σ'(A_{l−1}) ⊙ (V_lᵀ B_l), which is solved for B_l by iteration.

    Args:
        a: A_0, `[width, samples]`.
        b: B_0, of the same shape.
        effective_depth: L̃.
        steps: ρ, or the number of equidistant layers.
        sigma: the nonlinearity.

    Raises:
        NumericalError: the iteration does not converge, for example with large steps or momenta.

    Example:
        >>> from fathometer.leaky.energy import criticality
        >>> a, b = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        >>> criticality(solved_path(a, b / 10, 1.0, 20)).max().item() < 1e-12
        True
    """
    function, rho, depth = nonlinearity(sigma), as_steps(steps), require_depth(effective_depth)
    a, b = _start(a, b)
    representations, momenta, weights = [a], [b], []
    for step in rho.tolist():
        image, slope, before = function.function(a), function.slope(a), b
        for _ in range(MAX_ROUNDS):
            pushed = depth * b @ image.mT
            following = (before - step * slope * (pushed.mT @ b)) / (1 - step * depth)
            moved = float((following - b).norm() / following.norm().clamp(min=1e-300))
            b = following
            if moved < SOLVED:
                break
        if not moved < GOOD_ENOUGH:
            raise NumericalError(
                f"the iteration for the momenta does not converge (last change {moved:.1g}); use smaller "
                "steps or momenta"
            )
        weights.append(depth * b @ with_ones(image).mT)
        a = next_layer(a.mT, weights[-1], step, depth, function).mT
        momenta.append(b)
        representations.append(a)
    return RepresentationPath(
        torch.stack(representations), rho, depth, function, torch.stack(momenta), torch.stack(weights)
    )


def _start(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    if a.ndim != 2 or a.shape != b.shape or not a.numel():
        raise InputError(
            f"expected A and B as [width, samples] of one shape, got {list(a.shape)} and {list(b.shape)}"
        )
    if not bool(a.isfinite().all() and b.isfinite().all()):
        raise InputError("expected finite A and B, got NaN or inf")
    return a.detach().double().cpu(), b.detach().double().cpu()
