"""The differential equations themselves: Hamiltonian dynamics of representations and momenta (section 1.5).

A and B are `[width, samples]`, float64; L̃ is the effective depth. No network is trained here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from fathometer.errors import InputError, NumericalError
from fathometer.leaky.energy import hamiltonian, require_depth
from fathometer.leaky.model import Nonlinearity, nonlinearity, with_ones
from fathometer.leaky.path import RepresentationPath
from fathometer.leaky.steps import check_choice, equidistant, given, places

Method: TypeAlias = Literal["DOP853", "RK45"]
State: TypeAlias = npt.NDArray[np.float64]

TOLERANCE = 1e-10
MIN_TOLERANCE = 1e-13  # SciPy's limit
DIVERGED = 1e12  # times the size of the start: H, of fourth order, has no digits left
MAX_EVALUATIONS = 200_000

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
        method: method of `scipy.integrate.solve_ivp`.
        tolerance: tolerance of each step, relative to each entry or to the size of the start.
    """

    path: RepresentationPath
    weights: Tensor
    hamiltonian: Tensor
    drift: float
    evaluations: int
    method: Method
    tolerance: float

    def __repr__(self) -> str:
        return f"Flow({self.path!r}, drift {self.drift:.1e}, {self.evaluations} evaluations, {self.method})"


def flow(
    a: Tensor,
    b: Tensor,
    effective_depth: float,
    *,
    steps: Tensor | int = 20,
    sigma: str = "relu",
    method: Method = "DOP853",
    tolerance: float = TOLERANCE,
) -> Flow:
    """Follow ∂A = ∂H/∂B and ∂B = −∂H/∂A from A_0 and B_0 to p = 1; see `velocities`.

    Args:
        a: A_0, `[width, samples]`.
        b: B_0, of the same shape.
        effective_depth: L̃.
        steps: places of the result: ρ, or the number of equidistant steps. They do not change the accuracy.
        sigma: the nonlinearity. A kink, as of `relu`, costs evaluations, and some of the accuracy.
        method: SciPy's, `DOP853` or `RK45`.
        tolerance: tolerance of each step.

    Raises:
        NumericalError: the flow cannot be followed, for example from large momenta: its forces are cubic.

    Example:
        >>> drawn = torch.Generator().manual_seed(0)
        >>> a, b = torch.randn(2, 4, 6, generator=drawn, dtype=torch.float64)
        >>> found = flow(a, b / 10, 2.0, steps=5, sigma="softplus")
        >>> found.path.representations.shape, found.drift < 1e-8
        (torch.Size([6, 4, 6]), True)
    """
    function, rho = nonlinearity(sigma), equidistant(steps) if isinstance(steps, int) else given(steps)
    depth, (a, b) = require_depth(effective_depth), _start(a, b)
    check_choice("method", method, Method)
    if not MIN_TOLERANCE <= tolerance < 1:
        raise InputError(
            f"expected a number from {MIN_TOLERANCE:g} to below 1, got {tolerance!r}", parameter="tolerance"
        )
    found, evaluations = _solve(torch.stack([a, b]), places(rho), function, depth, method, tolerance)
    representations, momenta = found[:, 0], found[:, 1]
    weights = depth * momenta @ with_ones(function.function(representations)).mT
    energy = hamiltonian(representations, momenta, function, depth)
    size = energy[0].abs().item() or 1.0
    path = RepresentationPath(representations, rho, depth, function, momenta, weights[:-1])
    drift = (energy - energy[0]).abs().max().item() / size
    return Flow(path, weights, energy, drift, evaluations, method, tolerance)


def velocities(a: Tensor, b: Tensor, sigma: Nonlinearity, effective_depth: float) -> tuple[Tensor, Tensor]:
    """Compute ∂A = L̃ (Bσ(A)ᵀσ(A) − A) and ∂B = −L̃ (σ'(A) ⊙ [σ(A)BᵀB] − B), `[..., width, samples]` each.

    The bracket has one more row than A, that of the ones, which do not depend on A: it is dropped.

    Example:
        >>> a, b = torch.tensor([[1.0, -1.0]]), torch.tensor([[2.0, 1.0]])
        >>> velocities(a, b, nonlinearity("relu"), 1.0)
        (tensor([[4., 4.]]), tensor([[-2.,  1.]]))
    """
    s = sigma.function(a)
    ones = with_ones(s)
    pushed = b @ ones.mT
    forward = effective_depth * (pushed @ ones - a)
    backward = -effective_depth * (sigma.slope(s) * (pushed[..., :-1].mT @ b) - b)
    return forward, backward


def _start(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    if a.ndim != 2 or a.shape != b.shape or not a.numel():
        raise InputError(
            f"expected A and B as [width, samples] of one shape, got {list(a.shape)} and {list(b.shape)}"
        )
    if not bool(a.isfinite().all() and b.isfinite().all()):
        raise InputError("expected finite A and B, got NaN or inf")
    return a.detach().double().cpu(), b.detach().double().cpu()


def _solve(
    start: Tensor, points: Tensor, sigma: Nonlinearity, depth: float, method: Method, tolerance: float
) -> tuple[Tensor, int]:
    """Return the state at every point, `[points, 2, width, samples]`, and the number of evaluations."""
    size = start.norm().item() / math.sqrt(start.numel()) or 1.0
    count = 0

    def right(p: float, state: State) -> State:
        nonlocal count
        count += 1
        if count > MAX_EVALUATIONS or not np.abs(state).max() < DIVERGED * size:  # also for NaN
            raise NumericalError(_DIVERGED.format(p))
        a, b = torch.from_numpy(state).view(start.shape)
        return torch.stack(velocities(a, b, sigma, depth)).view(-1).numpy()

    with np.errstate(over="ignore", invalid="ignore"):  # reported below
        found = solve_ivp(
            right,
            (0.0, 1.0),
            start.reshape(-1).numpy(),
            method=method,
            t_eval=points.clamp(max=1.0).numpy(),  # a sum of steps can exceed 1 by rounding
            rtol=tolerance,
            atol=tolerance * size,
        )
    if not found.success:
        raise NumericalError(_DIVERGED.format(float(found.t[-1])))
    return torch.from_numpy(np.ascontiguousarray(found.y.T)).view(-1, *start.shape), count
