"""From a minimum of the cost of identity that is not non-negative to a saddle: Proposition 3.

A is `[width, samples]`; σ is ReLU, without a row of ones (with one the path is the same: the row stays).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.leaky.energy import exact_cost
from fathometer.leaky.theory.identity import added_neuron, checked
from fathometer.leaky.theory.statement import Statement, at_least, equal, relative

CONSTANT = 1e-8  # what counts as constant along a path


@dataclass(frozen=True, eq=False)
class ConstantCostPath:
    """A_t, whose rows are √((1 − t) + t a_i) Â_i (Proposition 3).

    Attributes:
        start: Â, `[width, samples]`.
        coefficients: a, `[width]`, non-negative, at most N(N + 1) of them not zero.
    """

    start: Tensor
    coefficients: Tensor

    def at(self, t: float) -> Tensor:
        """A_t, `[width, samples]`."""
        return ((1 - t) + t * self.coefficients).sqrt()[:, None] * self.start


def constant_cost_path(a: Tensor) -> ConstantCostPath:
    """The path of Proposition 3, by Carathéodory's argument.

    (K, K^σ) = Σ a_i (Â_iÂ_iᵀ, σ(Â_i)σ(Â_i)ᵀ) holds for a = 1. While more than N(N + 1) of the a_i are not
    zero, the pairs depend on one another linearly; along that dependence one a_i is brought to zero, and
    none below.

    Example:
        >>> drawn = torch.Generator().manual_seed(0)
        >>> path = constant_cost_path(torch.randn(9, 2, generator=drawn, dtype=torch.float64))
        >>> int((path.coefficients > 0).sum()) <= 2 * 3
        True
    """
    a = checked(a)
    width, samples = a.shape
    if width <= samples * (samples + 1):
        raise InputError(
            f"Proposition 3 needs width > N(N + 1) = {samples * (samples + 1)}, got {width}; drop samples"
        )
    rows, columns = torch.triu_indices(samples, samples)
    pairs = (
        torch.stack([x[:, rows] * x[:, columns] for x in (a, a.relu())], 1).flatten(1).mT
    )  # [N(N+1), width]
    pairs = pairs / pairs.abs().max()
    coefficients = torch.ones(width, dtype=a.dtype)
    while (kept := coefficients.nonzero().flatten()).numel() > len(pairs):
        dependence = torch.linalg.svd(pairs[:, kept])[2][-1]
        dependence = dependence * (1 if dependence.max() >= -dependence.min() else -1)
        ratios = torch.where(dependence > 0, coefficients[kept] / dependence, torch.inf)
        least = int(ratios.argmin())
        moved = (coefficients[kept] - ratios[least] * dependence).clamp(min=0)
        moved[least] = 0
        coefficients[kept] = moved
    return ConstantCostPath(a, coefficients)


def path_to_a_saddle(a: Tensor, points: int = 11) -> list[Statement]:
    """Proposition 3: along that path K, K^σ and the cost are constant; its end is no minimum.

    The last comes from Proposition 2 with the zero row in place of the new neuron. That the end is a critical
    point, hence a saddle, needs Â to be a local minimum. The construction does not: any A will do here.

    Args:
        a: Â, with a negative entry and more than N(N + 1) rows.
        points: how many t to look at.

    Example:
        >>> drawn = torch.Generator().manual_seed(0)
        >>> all(s.holds for s in path_to_a_saddle(torch.randn(9, 2, generator=drawn, dtype=torch.float64)))
        True
    """
    path = constant_cost_path(a)
    stops = torch.stack([path.at(t) for t in torch.linspace(0, 1, points).tolist()])
    costs = exact_cost(stops, stops.relu()).tolist()
    if not math.isfinite(costs[0]):
        raise InputError("the cost of A is infinite (Im Aᵀ ⊄ Im σ(A)ᵀ): take other samples, or fewer")
    drift = max(_gram_gap(stop, path.start) for stop in stops)
    drift_sigma = max(_gram_gap(stop.relu(), path.start.relu()) for stop in stops)
    end = stops[-1]
    empty = int((end.abs().amax(1) == 0).sum())
    width, samples = path.start.shape
    constant = equal(
        "Proposition 3, constant cost",
        "K_t, K_t^σ and the COI do not change along A_t, rows √((1 − t) + t a_i) Â_i",
        max(costs),
        min(costs),
        error=max(drift, drift_sigma, relative(max(costs), min(costs))),
        tolerance=CONSTANT,
        measure="the largest relative change of K, of K^σ and of the COI",
        details={"kernel": drift, "image_kernel": drift_sigma, "cost": relative(max(costs), min(costs))},
        note="shown for the given A, which need not be a local minimum",
    )
    zero_rows = at_least(
        "Proposition 3, zero rows",
        "at t = 1 at least w − N(N + 1) ≥ 1 rows are zero",
        float(empty),
        float(width - samples * (samples + 1)),
    )
    inner = added_neuron(end[end.abs().amax(1) > 0])
    falls = at_least(
        "Proposition 3, no minimum",
        "a neuron εz in the place of a zero row lowers the COI (Proposition 2)",
        inner.left,
        0.0,
        details={f"proposition_2_{name}": value for name, value in inner.details.items()},
        note="" if inner.holds else "the decrease is not that of Proposition 2",
    )
    return [constant, zero_rows, falls]


def _gram_gap(a: Tensor, b: Tensor) -> float:
    k = b.mT @ b
    return float((a.mT @ a - k).norm() / k.norm().clamp(min=1e-300))
