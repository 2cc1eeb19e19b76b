"""Compute exact W₂ between two samples, by a proof that the identity is optimal or by a solver.

Samples are `[n, d]` (or `[batch, n, d]` inside the package).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy
import torch
from torch import Tensor

from fathometer.errors import InputError, NumericalError, import_extra
from fathometer.threads import Pool
from fathometer.transport.arrays import Array, as_samples, check_spread, largest_entry
from fathometer.transport.moments import centre

_ROUNDING = 1e-14  # of the squared norms that a cost is the difference of


@dataclass(frozen=True, eq=False)
class Wasserstein2:
    """W₂ between two samples, with the coupling that attains it.

    `coupling` is `"identity"` (row i goes to row i, proved optimal), `"assignment"` (row i goes to row
    `permutation[i]`) or `"plan"` (mass is split as in `plan`).
    """

    distance: float
    coupling: Literal["identity", "assignment", "plan"]
    permutation: npt.NDArray[np.int64] | None = None
    plan: npt.NDArray[np.float64] | None = None

    def __float__(self) -> float:
        return self.distance


def wasserstein2(x: Array, y: Array) -> Wasserstein2:
    """Compute exact W₂(X, Y), Eq. (3), between two samples `[n, d]` and `[m, d]`.

    Samples of one size: the identity where it can be proved optimal, a linear assignment otherwise.
    Samples of different size: a linear programme by POT (the `pot` extra).

    Example:
        >>> import numpy as np
        >>> x = np.array([[0.0], [1.0]])
        >>> float(wasserstein2(x, x[::-1]))
        0.0
    """
    a, b = as_samples(x, "x", minimum=1).detach(), as_samples(y, "y", minimum=1).detach()
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise InputError(
            f"expected x [n, d] and y [m, d] with as many features, got {list(a.shape)} and {list(b.shape)}"
        )
    b = b.to(a.device)
    (mean_a, rows_a), (mean_b, rows_b) = centre(a), centre(b)
    for rows, name in ((rows_a, "x"), (rows_b, "y"), ((mean_a - mean_b)[None], "x − y")):
        check_spread(largest_entry(rows), name)
    if len(a) != len(b):
        return _by_plan(a, b)
    permutation, proved = start_matching(rows_a[None], rows_b[None])()
    distance = float(paired_cost(a[None], b[None], permutation).sqrt())
    if proved[0]:
        return Wasserstein2(distance, "identity")
    return Wasserstein2(distance, "assignment", permutation=permutation[0].cpu().numpy())


def paired_cost(x: Tensor, y: Tensor, permutation: Tensor) -> Tensor:
    """Compute (1/n) Σ_i ‖x_i − y_π(i)‖² of each item, `[batch]`; differentiable in x and y."""
    partner = y.gather(-2, permutation[..., None].expand_as(y))
    return torch.linalg.matrix_norm(x - partner).square() / x.shape[-2]


@torch.no_grad()
def start_matching(x: Tensor, y: Tensor) -> Callable[[], tuple[Tensor, list[bool]]]:
    """Begin the search for π `[batch, n]` that minimises Σ_i ‖x_i − y_π(i)‖².

    The function returned waits for π, and for each item whether it is the identity. Where that can be proved
    optimal, it is. Otherwise the assignment problem is solved, in threads, while the caller continues; in one
    dimension, by sorting. Both samples are centred: the optimum stays in place and rounding small.
    """
    batch, n, d = x.shape
    identity = torch.arange(n, device=x.device).expand(batch, n)
    if d == 1:
        ranks = x[..., 0].argsort(stable=True).argsort(stable=True)
        found = _prefer_identity(x, y, identity, y[..., 0].argsort(stable=True).gather(-1, ranks))
        return lambda: found
    y_norms2 = torch.linalg.vector_norm(y, dim=-1).square()
    cost = torch.baddbmm(y_norms2[:, None, :], x, y.mT, alpha=-2)  # without ‖x_i‖²
    unproved = _without_proof(cost, _rounding(x, y))
    if not unproved.numel():
        return lambda: (identity, [True] * batch)
    x_norms2 = torch.linalg.vector_norm(x[unproved], dim=-1).square()
    pending = _start_assignments(cost[unproved] + x_norms2[:, :, None])

    @torch.no_grad()
    def finish() -> tuple[Tensor, list[bool]]:
        columns = torch.from_numpy(np.stack([job.result() for job in pending])).to(x.device)
        return _prefer_identity(x, y, identity, identity.index_copy(0, unproved, columns))

    return finish


def _without_proof(cost: Tensor, rounding: Tensor) -> Tensor:
    """Return the items of a batch of cost matrices whose diagonal is not proved optimal.

    If every row of c has its minimum on the diagonal, no permutation can cost less. The same holds
    of c_ij − v_j for any v. After v = 0, two steps of Bellman and Ford towards better ones are tried:
    v_j ← min_i (v_i + c_ij − c_ii).
    """
    v = torch.zeros_like(cost[:, 0])
    left = torch.arange(len(cost), device=cost.device)
    for attempt in range(3):
        if attempt:
            diagonal = cost.diagonal(dim1=-2, dim2=-1)
            v = torch.minimum(v, (cost + (v - diagonal)[:, :, None]).amin(-2))
        shifted = cost - v[:, None, :] if attempt else cost
        excess = (shifted.diagonal(dim1=-2, dim2=-1) - shifted.amin(-1)).sum(-1)
        unproved = (excess > rounding[left]).nonzero().flatten()
        if not unproved.numel():
            return left[:0]
        cost, v, left = cost[unproved], v[unproved], left[unproved]
    return left


def _prefer_identity(
    x: Tensor, y: Tensor, identity: Tensor, permutation: Tensor
) -> tuple[Tensor, list[bool]]:
    """Return the identity wherever it costs no more than the optimum that was found."""
    excess = paired_cost(x, y, identity) - paired_cost(x, y, permutation)
    optimal = excess * x.shape[-2] <= _rounding(x, y)
    return torch.where(optimal[:, None], identity, permutation), optimal.tolist()


def _rounding(x: Tensor, y: Tensor) -> Tensor:
    """Return the rounding error that a sum of costs may have."""
    return _ROUNDING * (torch.linalg.matrix_norm(x).square() + torch.linalg.matrix_norm(y).square())


def _start_assignments(costs: Tensor) -> list[Future[npt.NDArray[np.int64]]]:
    """Search the best permutation of each cost matrix in threads: SciPy's solver releases the GIL.

    Subtracting the minimum of each column does not change the optimum and, for squared distances, saves
    most of the search.
    """
    costs = costs - costs.amin(-2, keepdim=True)
    if costs.is_cuda:
        costs = torch.empty_like(costs, device="cpu", pin_memory=True).copy_(costs)
    return [_solvers().submit(_assign, cost) for cost in costs.numpy()]


def _assign(cost: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    columns: npt.NDArray[np.int64] = scipy.optimize.linear_sum_assignment(cost)[1].astype(np.int64)
    return columns


@functools.cache
def _solvers() -> Pool:
    return Pool(os.cpu_count() or 1)


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_solvers.cache_clear)


def _by_plan(x: Tensor, y: Tensor) -> Wasserstein2:
    """Compute W₂ between samples of different size, each with equal weights."""
    ot = import_extra("ot", extra="pot", purpose="W₂ between samples of different size", package="POT")
    cost = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist").square().cpu().numpy()
    plan, log = ot.emd(ot.unif(len(x)), ot.unif(len(y)), cost, numItermax=10_000_000, log=True)
    if log["warning"]:
        raise NumericalError(f"POT found no exact transport plan: {log['warning']}")
    return Wasserstein2(float(np.sqrt(np.sum(plan * cost))), "plan", plan=plan)
