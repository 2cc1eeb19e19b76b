"""Balancedness, and how the norm of the weights grows along the path: Proposition 9.

Representations are `[layers + 1, width, samples]`, weights `[layers, width, width + 1]` with the bias b last.
T_l is Tr[B_lA_lᵀ], and H_l is H(A_{l−1}, B_l).
"""

from __future__ import annotations

import math

from torch import Tensor

from fathometer.leaky.energy import balance, hamiltonians, require_depth
from fathometer.leaky.path import RepresentationPath
from fathometer.leaky.theory.statement import TRAINED, Statement, equal, relative

NEGLIGIBLE = 1e-9  # of the largest ‖W‖²: a growth by biases below this is 0, or lost in rounding


def balancedness(path: RepresentationPath, tolerance: float = TRAINED) -> list[Statement]:
    """Check Proposition 9, corrected, and its exact form in a network: three statements.

    They are `bias_balance`, `norm_balance` and `norm_growth`.
    """
    return [bias_balance(path, tolerance), norm_balance(path, tolerance), norm_growth(path, tolerance)]


def bias_balance(path: RepresentationPath, tolerance: float = TRAINED) -> Statement:
    """Check T_l − T_{l−1} = ρ_l ‖b_l‖² / L̃ in every layer, at a critical point.

    For any weights the left side is ρ_l b_l·(B_l 1), since σ'(A) ⊙ A = σ(A) for ReLU; at a critical point
    b_l = L̃ B_l 1. It is the discrete ∂_p Tr[BAᵀ] = ‖b‖²/L̃. Sides are sums over the layers. Without biases the
    difference is measured by the largest ‖W‖²/L̃².
    """
    momenta, weights = path.require_momenta()
    norms, gains, claimed = balance(path)
    always = path.steps * (weights[..., -1] * momenta[1:].sum(2)).sum(1)
    unbiased = _negligible(path.effective_depth**2 * claimed.sum(), norms)
    scale = norms.max().item() / path.effective_depth**2 if unbiased else claimed.max().item()
    scale_name = "‖W‖²/L̃²" if unbiased else "right side"
    return equal(
        "Proposition 9, biases",
        "Tr[B_lA_lᵀ] − Tr[B_{l−1}A_{l−1}ᵀ] = ρ_l‖b_l‖²/L̃ in every layer",
        gains.sum().item(),
        claimed.sum().item(),
        error=_largest(gains - claimed, scale),
        tolerance=tolerance,
        measure=f"the largest difference of a layer over the largest {scale_name}",
        details={"off_for_any_weights": _largest(gains - always, scale)},
        note="all biases are zero: so are both sides, trained or not" if unbiased else "",
    )


def norm_balance(path: RepresentationPath, tolerance: float = TRAINED) -> Statement:
    """Check (1 + ρ_lL̃) ‖W_l‖² = 2L̃² T_l + 2L̃ (1 − ρ_lL̃) H_l in every layer, at a critical point.

    It follows from H_l = ‖W_l‖²/(2L̃) − L̃ Tr[B_lA_{l−1}ᵀ] and T_l = (1 − ρL̃) Tr[B_lA_{l−1}ᵀ] + ρ‖W_l‖²/L̃, and
    relates the norm of the weights to T of `bias_balance`. Sides are means over the layers.
    """
    depth, leak = require_depth(path.effective_depth), path.steps * path.effective_depth
    momenta, _ = path.require_momenta()
    overlaps = (momenta[1:] * path.representations[1:]).sum((1, 2))
    left = (1 + leak) * balance(path).norms
    right = 2 * depth**2 * overlaps + 2 * depth * (1 - leak) * hamiltonians(path).staggered
    return equal(
        "Proposition 9, norms",
        "(1 + ρ_lL̃)‖W_l‖² = 2L̃²Tr[B_lA_lᵀ] + 2L̃(1 − ρ_lL̃)H_l in every layer",
        left.mean().item(),
        right.mean().item(),
        error=_largest(left - right, left.max().item()),
        tolerance=tolerance,
        measure="the largest difference of a layer over the largest left side",
    )


def norm_growth(path: RepresentationPath, tolerance: float = TRAINED) -> Statement:
    """Check Proposition 9: ‖W_p‖² = ‖W_0‖² + 2L̃ ∫‖b‖² dq. The paper has L̃ in the place of 2L̃.

    H = ‖W‖²/(2L̃) − L̃ Tr[BAᵀ] is constant and ∂_p Tr[BAᵀ] = ‖b‖²/L̃, so ∂_p‖W‖² = 2L̃‖b‖².

    In a network of few layers H_l drifts, and the norms alone do not grow by that factor. What is exact there
    is the difference of `norm_balance` between two layers,
    (1 + ρL̃)(‖W_l‖² − ‖W_1‖²) − 2L̃(1 − ρL̃)(H_l − H_1) = 2L̃ Σ ρ_i‖b_i‖² over i = 2 … l, here with equal ρ.
    Sides are those of this equation at the last layer. The details hold `factor`, the fit of the left side to
    L̃Σρ‖b‖² over all layers, which is to be 2; `factor_with_drift`, that of ‖W_l‖² − ‖W_1‖² alone; and both
    sides of the paper's equation at the last layer. Without biases there is nothing to fit a factor to: the
    difference of the sides, in the worst layer, is measured by the largest ‖W‖².
    """
    depth, leak = require_depth(path.effective_depth), path.steps * path.effective_depth
    norms, _, claimed = balance(path)
    grown = norms - norms[0]
    terms = (1 + leak) * norms - 2 * depth * (1 - leak) * hamiltonians(path).staggered
    left = terms - terms[0]
    integral = depth**2 * (claimed.cumsum(0) - claimed[0])  # of the layers after the first
    measured, paper = grown[-1].item(), integral[-1].item()
    if _negligible(integral[-1], norms):
        error, factors = _largest(left - 2 * integral, norms.max().item()), {}
        measure = "the largest |left − right| of a layer over the largest ‖W‖²"
        note = "all biases after the first are zero: there is no growth to fit a factor to"
    else:
        factors = {"factor": _fit(left, integral), "factor_with_drift": _fit(grown, integral)}
        error = abs(factors["factor"] / 2 - 1)
        measure = "|factor/2 − 1|, the factor fitted over all layers,"
        note = "the paper has the factor 1; it is 2 for the flow, and 1 only where ρL̃ = 1"
    return equal(
        "Proposition 9",
        "‖W_p‖² = ‖W_0‖² + 2L̃∫‖b‖²dq; in a network with the drift of H, and 1 + ρL̃",
        left[-1].item(),
        2 * paper,
        error=error,
        tolerance=tolerance,
        measure=measure,
        paper=paper,
        details={
            **factors,
            "largest_leak": leak.max().item(),
            "paper_left": measured,
            "paper_relative_gap": relative(measured, paper),
            "corrected_relative_gap": relative(measured, 2 * paper),
        },
        note=note,
    )


def _negligible(growth: Tensor, norms: Tensor) -> bool:
    """Say whether L̃Σρ‖b‖² is negligible compared with ‖W‖²."""
    return bool(growth <= NEGLIGIBLE * norms.max())


def _largest(differences: Tensor, scale: float) -> float:
    """Divide the largest difference by a size; 0 if both are 0."""
    off = differences.abs().max().item()
    return off / scale if scale > 0 else 0.0 if off == 0 else math.inf


def _fit(values: Tensor, to: Tensor) -> float:
    return ((values * to).sum() / to.square().sum()).item()
