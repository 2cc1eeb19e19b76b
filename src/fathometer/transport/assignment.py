"""Exact W₂ between two samples, and the proof or the solver that it rests on.

Samples are `[n, d]` (or `[batch, n, d]` inside the package).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from fathometer.arrays import Array, as_samples
from fathometer.errors import InputError, MissingExtraError, NumericalError

CouplingKind: TypeAlias = Literal["identity", "assignment", "plan"]

_ROUNDING = 1e-14  # of the squared norms that a cost is the difference of


@dataclass(frozen=True)
class Wasserstein2:
    """W₂ between two samples, with the coupling that attains it.

    `coupling` is `"identity"` (row i goes to row i, proved optimal), `"assignment"` (row i goes to row
    `permutation[i]`) or `"plan"` (mass is split as in `plan`).
    """

    distance: float
    coupling: CouplingKind
    permutation: npt.NDArray[np.int64] | None = None
    plan: npt.NDArray[np.float64] | None = None

    def __float__(self) -> float:
        return self.distance


def wasserstein2(
    x: Array,
    y: Array,
    *,
    x_weights: npt.ArrayLike | None = None,
    y_weights: npt.ArrayLike | None = None,
) -> Wasserstein2:
    """Exact W₂(X, Y), Eq. (3), between two samples `[n, d]` and `[m, d]`.

    Equal counts without weights: the identity where it can be proved optimal, a linear assignment
    otherwise. Different counts, or weights: a linear programme by POT (the `pot` extra).

    Example:
        >>> import numpy as np
        >>> x = np.array([[0.0], [1.0]])
        >>> float(wasserstein2(x, x[::-1]))
        0.0
    """
    a, b = as_samples(x, "x").detach(), as_samples(y, "y").detach()
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise InputError(
            f"expected x [n, d] and y [m, d] with as many features, got {list(a.shape)} and {list(b.shape)}"
        )
    b = b.to(a.device)
    if len(a) != len(b) or x_weights is not None or y_weights is not None:
        return _by_plan(a, b, x_weights, y_weights)
    permutation, proved = optimal_permutation(a[None], b[None])
    distance = float(paired_cost(a[None], b[None], permutation).sqrt())
    if proved[0]:
        return Wasserstein2(distance, "identity")
    return Wasserstein2(distance, "assignment", permutation=permutation[0].cpu().numpy())


def paired_cost(x: Tensor, y: Tensor, permutation: Tensor) -> Tensor:
    """(1/n) Σ_i ‖x_i − y_π(i)‖² of each item, `[batch]`; differentiable in x and y."""
    partner = y.gather(-2, permutation[..., None].expand_as(y))
    return (x - partner).square().sum(-1).mean(-1)


@torch.no_grad()
def optimal_permutation(x: Tensor, y: Tensor) -> tuple[Tensor, list[bool]]:
    """π `[batch, n]` that minimises Σ_i ‖x_i − y_π(i)‖², and for each item whether it is the identity.

    The identity is optimal when every row of the cost matrix has its minimum on the diagonal: then
    no permutation can cost less. It is taken when the row minima prove it up to rounding. Otherwise the
    assignment problem is solved; in one dimension, by sorting.
    """
    batch, n, d = x.shape
    x, y = x - x.mean(-2, keepdim=True), y - y.mean(-2, keepdim=True)  # leaves the optimum in place
    identity = torch.arange(n, device=x.device).expand(batch, n)
    if d == 1:
        ranks = x[..., 0].argsort(stable=True).argsort(stable=True)
        permutation = y[..., 0].argsort(stable=True).gather(-1, ranks)
        return _prefer_identity(x, y, identity, permutation)
    y_norms2 = torch.linalg.vector_norm(y, dim=-1).square()
    cost = torch.baddbmm(y_norms2[:, None, :], x, y.mT, alpha=-2)  # without ‖x_i‖²
    gap = (cost.diagonal(dim1=-2, dim2=-1) - cost.amin(-1)).sum(-1)
    unproved = (gap > _rounding(x, y)).nonzero().flatten()
    if not unproved.numel():
        return identity, [True] * batch
    solved = _solve_assignments(cost[unproved]).to(x.device)
    return _prefer_identity(x, y, identity, identity.index_copy(0, unproved, solved))


def _prefer_identity(
    x: Tensor, y: Tensor, identity: Tensor, permutation: Tensor
) -> tuple[Tensor, list[bool]]:
    """The identity wherever it costs no more than the optimum that was found."""
    excess = paired_cost(x, y, identity) - paired_cost(x, y, permutation)
    optimal = excess * x.shape[-2] <= _rounding(x, y)
    return torch.where(optimal[:, None], identity, permutation), optimal.tolist()


def _rounding(x: Tensor, y: Tensor) -> Tensor:
    """What a sum of costs may be off by."""
    return _ROUNDING * (torch.linalg.matrix_norm(x).square() + torch.linalg.matrix_norm(y).square())


def _solve_assignments(costs: Tensor) -> Tensor:
    """The best permutation of each cost matrix; SciPy's solver releases the GIL.

    Taking the minimum off each column leaves the optimum in place and saves most of the search.
    """
    costs = costs - costs.amin(-2, keepdim=True)
    if costs.is_cuda:
        costs = torch.empty_like(costs, device="cpu", pin_memory=True).copy_(costs)
    workers = min(len(costs), os.cpu_count() or 1)
    with ThreadPoolExecutor(workers) as pool:
        columns = list(pool.map(lambda cost: linear_sum_assignment(cost)[1], costs.numpy()))
    return torch.from_numpy(np.stack(columns).astype(np.int64))


def _by_plan(
    x: Tensor,
    y: Tensor,
    x_weights: npt.ArrayLike | None,
    y_weights: npt.ArrayLike | None,
) -> Wasserstein2:
    try:
        import ot
    except ImportError as error:
        raise MissingExtraError("POT", "pot", "W₂ with weights or different counts") from error
    a, b = _weights(x_weights, len(x), "x_weights"), _weights(y_weights, len(y), "y_weights")
    cost = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist").square().cpu().numpy()
    plan, log = ot.emd(a, b, cost, numItermax=10_000_000, log=True)
    if log["warning"]:
        raise NumericalError(f"POT found no exact transport plan: {log['warning']}")
    return Wasserstein2(float(np.sqrt(np.sum(plan * cost))), "plan", plan=plan)


def _weights(weights: npt.ArrayLike | None, n: int, name: str) -> npt.NDArray[np.float64]:
    if weights is None:
        return np.full(n, 1 / n)
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (n,) or not np.isfinite(values).all() or values.min() < 0 or not values.sum():
        raise InputError(
            f"{name}: expected {n} finite numbers ≥ 0, not all 0, one a sample; "
            f"got shape {list(values.shape)}"
        )
    return np.asarray(values / values.sum())
