"""The cost of identity of one representation A: Propositions 1 to 3.

A is `[width, samples]`; σ is ReLU, and there is no row of ones: with a bias Propositions 1 and 2 are false
(A = −ε for a small ε costs ε², and its stable rank is 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.leaky.energy import exact_cost, kernel_norm2
from fathometer.leaky.theory.statement import Statement, at_least, equal, relative

CLOSED_FORM = 1e-5  # agreement of differences with a closed form
RESOLVED = 1e-6  # decreases below this share of ‖σ(A_i)‖² COI are lost in rounding
CONSTANT = 1e-8  # what counts as constant along a path
SADDLE_STOPS = 11  # values of t along the path to a saddle


def stable_rank_bound(a: Tensor, gamma: float = 0.0) -> Statement:
    """Check Proposition 1: COI ≥ ‖A‖*² / ‖A‖_F², and for γ > 0 COI_γ ≥ ‖A‖*² / (‖σ(A)‖_F² + γN).

    A = Wσ(A) gives ‖A‖* ≤ ‖W‖_F ‖σ(A)‖_F, and ‖σ(A)‖_F ≤ ‖A‖_F. With γ the same holds for
    A = [W, R/√γ] [σ(A); √γ I] with R = A − Wσ(A). The paper writes ‖Aσ(A)⁺‖², which without its convention
    that the cost is infinite outside the image of σ(A)ᵀ violates the bound (A = −1: 0 against 1).

    Args:
        a: A.
        gamma: γ; 0 for the exact cost.

    Example:
        >>> found = stable_rank_bound(torch.tensor([[1.0, -1.0], [0.0, 2.0]], dtype=torch.float64))
        >>> found.holds, round(found.left, 3), round(found.right, 3)
        (True, 2.25, 1.667)
    """
    a = _checked(a)
    s = a.relu()
    nuclear = torch.linalg.svdvals(a).sum().item()
    cost = cost_of(a, gamma)
    if gamma == 0:
        below, claim = a.square().sum().item(), "COI ≥ ‖A‖*² / ‖A‖_F²"
    else:
        below = s.square().sum().item() + gamma * a.shape[1]
        claim = "COI_γ ≥ ‖A‖*² / (‖σ(A)‖_F² + γN)"
    literal = (a @ torch.linalg.pinv(s)).square().sum().item()
    return at_least(
        "Proposition 1" + (" with γ" if gamma else ""),
        claim,
        cost,
        nuclear**2 / below if below > 0 else 0.0,
        details={"gamma": gamma, "paper_left": literal, "rank": float(torch.linalg.matrix_rank(a))},
        note="" if math.isfinite(cost) else "Im Aᵀ ⊄ Im σ(A)ᵀ: the cost is infinite, Aσ(A)⁺ is not",
    )


def added_neuron(a: Tensor, sample: int | None = None, gamma: float = 0.0) -> Statement:
    """Check Proposition 2: a neuron εz, z = σ(A)ᵀσ(A_{·i}), lowers the cost by ε²(‖A_{·i}‖² − ‖σ(A_{·i})‖²).

    The paper adds O(ε⁴). It is exact: z = K e_i with K = σ(A)ᵀσ(A), so where the cost is finite
    COI(ε) = COI − ε²(‖A_{·i}‖² − k)/(1 + ε²k) with k = ‖σ(A_{·i})‖², for any ε (Sherman–Morrison). With γ > 0
    the cost need not be finite: z = (K + γI) e_i, k = ‖σ(A_{·i})‖² + γ, and the cost falls if
    γ < ‖A_{·i}‖² − ‖σ(A_{·i})‖².

    Left is the measured decrease over ε², extrapolated to ε = 0 from several ε; right is ‖A_{·i}‖² − k.

    Args:
        a: A, with a negative entry.
        sample: i. Default: the sample with the largest negative part.
        gamma: γ; 0 for the exact cost.

    Example:
        >>> found = added_neuron(torch.tensor([[1.0, -1.0], [0.0, 2.0]], dtype=torch.float64))
        >>> found.holds, round(found.left, 4), found.right
        (True, 1.0, 1.0)
    """
    a = _checked(a)
    negative = a.clamp(max=0).square().sum(0)
    i = int(negative.argmax()) if sample is None else sample
    if not negative[i] > 0:
        raise InputError(
            f"sample {i} has no negative entry, so that Proposition 2 does not apply; use another"
        )
    before = cost_of(a, gamma)
    if not math.isfinite(before):
        raise InputError("the cost of A is infinite (Im Aᵀ ⊄ Im σ(A)ᵀ); use more neurons, or gamma > 0")
    s = a.relu()
    z = s.mT @ s[:, i]
    z[i] += gamma
    k = s[:, i].square().sum().item() + gamma
    predicted = a[:, i].square().sum().item() - k
    squares = [strength / k for strength in (0.1, 0.01, 0.001)]  # values of ε²: ε²k must be small
    rates = [(before - cost_of(torch.cat([a, math.sqrt(e) * z[None]]), gamma)) / e for e in squares]
    closed = [predicted / (1 + e * k) for e in squares]
    limit = (rates[2] * squares[1] - rates[1] * squares[2]) / (squares[1] - squares[2])  # Richardson, in ε²
    scale = max(abs(predicted), RESOLVED * k * before)
    off = max(abs(rate - right) / scale for rate, right in zip(rates, closed, strict=True))
    ratios = [rate / predicted for rate in rates] if predicted else []
    gaps = [abs(ratio - 1) for ratio in ratios]
    # A limit from two points has an error of fourth order: (ε²k)² = 1e-5 of the prediction.
    error = max(off, 0.1 * abs(limit - predicted) / scale)
    return equal(
        "Proposition 2" + (" with γ" if gamma else ""),
        "(COI − COI([A; εz])) / ε² → ‖A_i‖² − ‖σ(A_i)‖² as ε → 0",
        limit,
        predicted,
        error=error,
        tolerance=CLOSED_FORM,
        measure=f"the gap to the closed form at any ε (limit: a tenth) over right or {RESOLVED:g} k COI",
        details={
            "sample": float(i),
            "gamma": gamma,
            "cost": before,
            "decreases": float(min(rates) > 0),
            "off_closed_form": off,
            **{f"ratio_{n}": ratio for n, ratio in enumerate(ratios, 1)},
            "ratio_tends_to_1": float(bool(gaps) and all(after < before for before, after in pairwise(gaps))),
        },
        note="" if gamma else "needs Im Aᵀ ⊂ Im σ(A)ᵀ; then exact: the decrease is ε²(‖A_i‖² − k)/(1 + ε²k)",
    )


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
        """Compute A_t, `[width, samples]`."""
        return ((1 - t) + t * self.coefficients).sqrt()[:, None] * self.start


def constant_cost_path(a: Tensor) -> ConstantCostPath:
    """Construct the path of Proposition 3, by Carathéodory's argument.

    (K, K^σ) = Σ a_i (Â_iÂ_iᵀ, σ(Â_i)σ(Â_i)ᵀ) holds for a = 1. While more than N(N + 1) of the a_i are not
    zero, the pairs are linearly dependent; moving along that dependence makes one a_i zero, and none
    negative.

    Example:
        >>> drawn = torch.Generator().manual_seed(0)
        >>> path = constant_cost_path(torch.randn(9, 2, generator=drawn, dtype=torch.float64))
        >>> int((path.coefficients > 0).sum()) <= 2 * 3
        True
    """
    a = _checked(a)
    width, samples = a.shape
    if width <= samples * (samples + 1):
        raise InputError(
            f"Proposition 3 needs width > N(N + 1) = {samples * (samples + 1)}, got {width}; drop samples"
        )
    rows, columns = torch.triu_indices(samples, samples)
    pairs = torch.cat([x[:, rows] * x[:, columns] for x in (a, a.relu())], 1).mT  # [N(N + 1), width]
    pairs = pairs / pairs.abs().max()
    coefficients = torch.ones(width, dtype=a.dtype)
    while (kept := coefficients.nonzero().flatten()).numel() > len(pairs):
        dependence = torch.linalg.svd(pairs[:, kept])[2][-1]
        dependence = dependence * (1 if dependence.max() >= -dependence.min() else -1)
        ratios = torch.where(dependence > 0, coefficients[kept] / dependence, torch.inf)
        first = int(ratios.argmin())
        moved = (coefficients[kept] - ratios[first] * dependence).clamp(min=0)
        moved[first] = 0
        coefficients[kept] = moved
    return ConstantCostPath(a, coefficients)


def path_to_a_saddle(a: Tensor) -> list[Statement]:
    """Check Proposition 3: along that path K, K^σ and the cost are constant; its end is no minimum.

    The last follows from Proposition 2 with the zero row in place of the new neuron. The end is a critical
    point, hence a saddle, if Â is a local minimum. The construction works for any A.

    Args:
        a: Â, with a negative entry and more than N(N + 1) rows.

    Example:
        >>> drawn = torch.Generator().manual_seed(0)
        >>> all(s.holds for s in path_to_a_saddle(torch.randn(9, 2, generator=drawn, dtype=torch.float64)))
        True
    """
    path = constant_cost_path(a)
    stops = torch.stack([path.at(t) for t in torch.linspace(0, 1, SADDLE_STOPS).tolist()])
    costs = exact_cost(stops, stops.relu()).tolist()
    if not math.isfinite(costs[0]):
        raise InputError("the cost of A is infinite (Im Aᵀ ⊄ Im σ(A)ᵀ): use other samples, or fewer")
    kernel = max(_gram_gap(stop, path.start) for stop in stops)
    image_kernel = max(_gram_gap(stop.relu(), path.start.relu()) for stop in stops)
    cost = relative(max(costs), min(costs))
    end = stops[-1]
    empty = end.abs().amax(1) == 0
    width, samples = path.start.shape
    constant = equal(
        "Proposition 3, constant cost",
        "K_t, K_t^σ and the COI do not change along A_t, rows √((1 − t) + t a_i) Â_i",
        max(costs),
        min(costs),
        error=max(kernel, image_kernel, cost),
        tolerance=CONSTANT,
        measure="the largest relative change of K, of K^σ and of the COI",
        details={"kernel": kernel, "image_kernel": image_kernel, "cost": cost},
        note="shown for the given A, which need not be a local minimum",
    )
    zero_rows = at_least(
        "Proposition 3, zero rows",
        "at t = 1 at least w − N(N + 1) ≥ 1 rows are zero",
        float(empty.sum()),
        float(width - samples * (samples + 1)),
    )
    inner = added_neuron(end[~empty])
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


def cost_of(a: Tensor, gamma: float = 0.0) -> float:
    """Compute COI_γ of one representation, or the exact COI for γ = 0; σ is ReLU, without a row of ones."""
    s = a.relu()
    return (exact_cost(a, s) if gamma == 0 else kernel_norm2(a, s, gamma)).item()


def _checked(a: Tensor) -> Tensor:
    """Return A as float64, or raise an error if it is not a finite matrix."""
    if a.ndim != 2 or 0 in a.shape or not bool(a.isfinite().all()):
        raise InputError(f"expected a finite matrix, [width, samples], got {list(a.shape)}", parameter="a")
    return a.detach().double()
