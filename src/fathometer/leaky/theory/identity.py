"""The cost of identity of one representation A: Propositions 1 and 2.

A is `[width, samples]`; σ is ReLU, and there is no row of ones: with a bias the Propositions are false
(A = −ε for a small ε costs ε², and its stable rank is 1).
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.leaky.energy import exact_cost, kernel_norm2
from fathometer.leaky.theory.statement import Statement, at_least, equal

CLOSED_FORM = 1e-5  # agreement of differences with a closed form
RESOLVED = 1e-6  # decreases below this share of ‖σ(A_i)‖² COI drown in rounding


def stable_rank_bound(a: Tensor, gamma: float = 0.0) -> Statement:
    """Proposition 1: COI ≥ ‖A‖*² / ‖A‖_F², and for γ > 0 COI_γ ≥ ‖A‖*² / (‖σ(A)‖_F² + γN).

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
    a = checked(a)
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
    """Proposition 2: a new neuron εz with z = σ(A)ᵀσ(A_{·i}) lowers the cost by ε²(‖A_{·i}‖² − ‖σ(A_{·i})‖²).

    The paper adds O(ε⁴). It is exact: z = K e_i with K = σ(A)ᵀσ(A), so (K + ε²zzᵀ)⁺ = K⁺ − ε²K⁺zzᵀK⁺/(1 +
    ε²k) with k = zᵀK⁺z = ‖σ(A_{·i})‖², and AK⁺z = A_{·i} where Im Aᵀ ⊂ Im σ(A)ᵀ, that is, where the cost is
    finite. Hence COI(ε) = COI − ε²(‖A_{·i}‖² − k)/(1 + ε²k), for any ε. With γ > 0 no such condition is
    needed: z = (K + γI) e_i, k = ‖σ(A_{·i})‖² + γ, and the cost falls where γ < ‖A_{·i}‖² − ‖σ(A_{·i})‖².

    Left is the measured decrease over ε², extrapolated to ε = 0 from several ε; right is ‖A_{·i}‖² − k.

    Args:
        a: A, with a negative entry.
        sample: i; by default the sample with the largest negative part.
        gamma: γ; 0 for the exact cost.

    Example:
        >>> found = added_neuron(torch.tensor([[1.0, -1.0], [0.0, 2.0]], dtype=torch.float64))
        >>> found.holds, round(found.left, 4), found.right
        (True, 1.0, 1.0)
    """
    a = checked(a)
    negative = a.clamp(max=0).square().sum(0)
    i = int(negative.argmax()) if sample is None else sample
    if not negative[i] > 0:
        raise InputError(f"sample {i} has no negative entry: Proposition 2 says nothing of it; take another")
    before = cost_of(a, gamma)
    if not math.isfinite(before):
        raise InputError("the cost of A is infinite (Im Aᵀ ⊄ Im σ(A)ᵀ); take more neurons, or gamma > 0")
    s = a.relu()
    z = s.mT @ s[:, i]
    z[i] += gamma
    k = s[:, i].square().sum().item() + gamma
    predicted = a[:, i].square().sum().item() - k
    squares = [strength / k for strength in (0.1, 0.01, 0.001)]  # of ε: ε²k is what is to be small
    rates = [(before - cost_of(torch.cat([a, math.sqrt(e) * z[None]]), gamma)) / e for e in squares]
    closed = [predicted / (1 + e * k) for e in squares]
    limit = (rates[2] * squares[1] - rates[1] * squares[2]) / (squares[1] - squares[2])  # Richardson, in ε²
    scale = max(abs(predicted), RESOLVED * k * before)
    off = max(abs(rate - right) / scale for rate, right in zip(rates, closed, strict=True))
    gaps = [abs(rate / predicted - 1) if predicted else math.inf for rate in rates]
    # The limit of two points errs by the fourth order: (ε²k)² = 1e-5 of the prediction.
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
            **{f"ratio_{n}": rate / predicted for n, rate in enumerate(rates, 1) if predicted},
            "ratio_tends_to_1": float(all(later < earlier for earlier, later in pairwise(gaps))),
        },
        note="needs Im Aᵀ ⊂ Im σ(A)ᵀ; then exact: the decrease is ε²(‖A_i‖² − k)/(1 + ε²k)"
        if not gamma
        else "",
    )


def cost_of(a: Tensor, gamma: float = 0.0) -> float:
    """COI_γ of one representation, and the exact COI for γ = 0; σ is ReLU, without a row of ones."""
    s = a.relu()
    return (exact_cost(a, s) if gamma == 0 else kernel_norm2(a, s, gamma)).item()


def checked(a: Tensor) -> Tensor:
    """A as float64, or a complaint."""
    if a.ndim != 2 or 0 in a.shape or not bool(a.isfinite().all()):
        raise InputError(f"A: expected a finite matrix, [width, samples], got {list(a.shape)}")
    return a.detach().double()
