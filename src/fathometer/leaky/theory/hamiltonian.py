"""Energies along a path: sections 1.3 and 1.5, appendix A.2, Theorem 4, Proposition 5.

Representations are `[layers + 1, width, samples]`. Of layer l are A_{l−1}, B_l and (A_l − A_{l−1})/ρ_l: the
network is symplectic Euler, and with these the identity of appendix A.2 is exact at a critical point. K
holds the bias's row of ones, without which there would be no Hamiltonian. Layers with σ(A) = 0 are left out:
γ_p = γ₀‖K_p‖ is 0 there, and norms in K + γI are infinite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fathometer.errors import InputError, check_positive
from fathometer.leaky.energy import (
    GAMMA,
    criticality,
    gamma_of,
    hamiltonians,
    in_dimensions,
    kernel_norm2,
    kernel_products,
    median,
    require_depth,
)
from fathometer.leaky.measures import CRITICAL, measure_path
from fathometer.leaky.model import with_ones
from fathometer.leaky.path import RepresentationPath
from fathometer.leaky.theory.statement import ROUNDING, TRAINED, Statement, at_least, equal, relative

ALGEBRA = 1e-8
CONSERVED = 0.05  # standard deviation of H over its median
ENDS = 0.1  # at each end of the path, p that is not inside
FALLING, VANISHED = -0.8, 0.05  # Proposition 5: rank correlation with L̃, and the last negative share


class _Terms(NamedTuple):
    """What the statements compare, of the layers with γ > 0."""

    kept: Tensor  # which layers these are
    gamma: Tensor
    speed: Tensor  # ‖∂A_l‖_(K+γI)
    cross: Tensor  # ⟨∂A_l, A_{l−1}⟩
    cost: Tensor  # ‖A_{l−1}‖²_(K+γI)


def _terms(path: RepresentationPath, gamma0: float, gamma: float | None = None) -> _Terms:
    """Compute the terms with γ_p = γ₀‖K_p‖, or with one γ for all layers."""
    images = path.images[:-1]
    ridge = gamma_of(images, gamma0) if gamma is None else images.new_full(images.shape[:1], gamma)
    kept = ridge > 0
    if not bool(kept.any()):
        raise InputError(
            "σ(A) is 0 in every layer: there are no energies to compare; give gamma, or train again"
        )
    velocity, cross, position = (product[kept] for product in kernel_products(path, ridge))
    return _Terms(kept, ridge[kept], velocity.sqrt(), cross, position)


def three_terms(path: RepresentationPath, gamma0: float = GAMMA) -> Statement:
    """Check section 1.3: 1/(2L̃) ‖L̃A + ∂A‖² = L̃/2 ‖A‖² + ⟨∂A, A⟩ + 1/(2L̃) ‖∂A‖², norms in K + γI.

    (L̃A + ∂A)² / (2L̃) has the cross term 2L̃⟨∂A, A⟩ / (2L̃): factor 1. The paper writes L̃⟨∂A, A⟩, which is
    `paper`. Plain algebra, for any path. Sides are sums over the layers, with weights ρ_l.
    """
    depth, terms = require_depth(path.effective_depth), _terms(path, gamma0)
    rho, kernel = path.steps[terms.kept], with_ones(path.images[:-1][terms.kept])
    whole = (depth * path.representations[:-1] + path.velocities)[terms.kept]
    direct = kernel_norm2(whole, kernel, terms.gamma) / (2 * depth)
    ends = terms.speed.square() / (2 * depth) + depth / 2 * terms.cost
    sides = (direct, ends + terms.cross, ends + depth * terms.cross, ends + terms.cross.abs())
    left, right, paper, size = ((rho * side).sum().item() for side in sides)
    return equal(
        "Section 1.3, three terms",
        "‖L̃A + ∂A‖²/(2L̃) = L̃/2 ‖A‖² + ⟨∂A, A⟩ + ‖∂A‖²/(2L̃)",
        left,
        right,
        error=abs(left - right) / max(size, 1e-300),
        tolerance=ALGEBRA,
        measure="the difference over the sum of the terms in size",
        paper=paper,
        details={"paper_relative_gap": relative(left, paper), "gamma0": gamma0},
        note="the paper has L̃⟨∂A, A⟩; the factor is 1",
    )


def weights_from_momenta(path: RepresentationPath, tolerance: float = CRITICAL) -> Statement:
    """Check section 1.5: W_l = L̃ B_l σ(A_{l−1})ᵀ at a critical point. All Hamiltonians rest on it.

    In a plain ResNet it is W_l = B_l σ(A_{l−1})ᵀ; see `criticality`.

    Sides are norms, the medians over the layers; the error is that of ‖W_l − L̃B_lσ(A_{l−1})ᵀ‖ / ‖W_l‖.
    """
    off, (momenta, weights) = criticality(path), path.require_momenta()
    expected = (path.effective_depth or 1.0) * momenta[1:] @ with_ones(path.images[:-1]).mT
    left, right = (median(side.norm(dim=(1, 2))).item() for side in (weights, expected))
    return equal(
        "Section 1.5, weights",
        f"W_l = {'L̃' if path.effective_depth else ''}B_lσ(A_{{l−1}})ᵀ",
        left,
        right,
        error=median(off).item(),
        tolerance=tolerance,
        measure="the median over the layers of ‖W − L̃Bσᵀ‖/‖W‖",
        details={"largest": off.max().item()},
    )


def hamiltonian_identity(
    path: RepresentationPath, gamma0: float = GAMMA, tolerance: float = TRAINED
) -> Statement:
    """Check appendix A.2: −2H/L̃ = ‖A‖² − ‖∂A/L̃ + γB‖² + γ‖B‖², norms in K + γI, in every layer.

    Sides are means over the layers; `error` is that of the worst layer, relative to ‖A‖² there.
    """
    terms, (momenta, _) = _terms(path, gamma0), path.require_momenta()
    depth, b, gamma = path.effective_depth, momenta[1:][terms.kept], terms.gamma
    moved = path.velocities[terms.kept] / depth + gamma[:, None, None] * b
    kernel = with_ones(path.images[:-1][terms.kept])
    left = in_dimensions(hamiltonians(path).staggered, depth)[terms.kept]
    right = terms.cost - kernel_norm2(moved, kernel, gamma) + gamma * b.square().sum((1, 2))
    return equal(
        "Appendix A.2",
        "−2H/L̃ = ‖A‖² − ‖∂A/L̃ + γB‖² + γ‖B‖² in K + γI",
        left.mean().item(),
        right.mean().item(),
        error=((left - right).abs() / terms.cost).max().item(),
        tolerance=tolerance,
        measure="the largest difference of a layer over its ‖A‖²_(K+γI)",
        details={"gamma0": gamma0, "layers_dead": float((~terms.kept).sum())},
    )


def hamiltonian_is_conserved(
    path: RepresentationPath, gamma0: float = GAMMA, tolerance: float = CONSERVED
) -> Statement:
    """Check section 1.5: −2H/L̃ is the same in all inner layers, those with 0.1 ≤ p ≤ 0.9.

    H is the mean of H(A_{l−1}, B_l) and H(A_l, B_l), which a network conserves best; near the ends, where A
    moves fast, few layers do not resolve it. Sides are the largest and the smallest −2H/L̃ of the inner
    layers. The error is their standard deviation over the size of their median. In the details, `cost_std` is
    that of the cost of identity, to which the paper compares H (Figure 1c), and `staggered`, `plain` and
    `all_layers` are errors of other readings of H.

    It is a statement about critical points: a network whose layers are all alike, as before training, moves
    little and conserves H too. `weights_from_momenta` tells the two apart.
    """
    staggered, plain, averaged = (in_dimensions(h, path.effective_depth) for h in hamiltonians(path))
    starts, ends = path.places[:-1], path.places[1:]
    inner = (starts >= ENDS - 1e-12) & (ends <= 1 - ENDS + 1e-12)
    if not bool(inner.any()):
        inner = torch.ones_like(inner)
    kept = averaged[inner]

    def spread(values: Tensor) -> float:
        return (values.std(correction=0) / median(values).abs()).item()

    return equal(
        "Section 1.5, H is conserved",
        "−2H/L̃ is constant over the inner layers (largest = smallest)",
        kept.max().item(),
        kept.min().item(),
        error=spread(kept),
        tolerance=tolerance,
        measure=f"std over |median| of −2H/L̃, {ENDS:g} ≤ p ≤ {1 - ENDS:g},",
        details={
            "median": median(kept).item(),
            "std": kept.std(correction=0).item(),
            "all_layers": spread(averaged),
            "staggered": spread(staggered[inner]),
            "plain": spread(plain[inner]),
            "cost_std": _terms(path, gamma0).cost.std(correction=0).item(),
            "gamma0": gamma0,
        },
        note="a network of few layers conserves H to O(ρ²): with more layers the error falls",
    )


def theorem_4(path: RepresentationPath, gamma0: float = GAMMA, gamma: float | None = None) -> list[Statement]:
    """Check Theorem 4, both displays, both sides of each: four statements.

    With C = sup_p γ_p‖B_p‖², COI = ‖A‖²_(K+γI) and ℓ = ∫‖∂A‖_(K+γI) dp:
    −(ℓ/L̃ + √C)² ≤ −2H/L̃ − min_p COI_p ≤ C, and −L̃√C ≤ ‖∂A_p‖ − L̃√max(0, COI_p + 2H/L̃) ≤ 2L̃√C for all p.

    The paper's first bound has √γ·c with c = sup‖B‖², where its proof has √(γc); the literal value is in the
    details. The root's argument can be negative, by γ‖B‖² at most, and is clipped; with a γ that depends on
    p, the constant is C. H is the median over the layers; `own_margin` is with each layer's own H, for which
    the theorem is exact at a critical point, however few the layers.

    Args:
        path: of a trained network.
        gamma0: γ₀, for γ_p = γ₀‖K_p‖_op.
        gamma: one γ > 0 for all p instead, as the theorem has it.
    """
    if gamma is not None:
        gamma = check_positive("gamma", gamma)
    terms, (momenta, _) = _terms(path, gamma0, gamma), path.require_momenta()
    depth, cost = path.effective_depth, terms.cost
    energy = in_dimensions(hamiltonians(path).staggered, depth)[terms.kept]
    momentum = momenta[1:][terms.kept].square().sum((1, 2))
    bound = (terms.gamma * momentum).max().item()
    value, narrowest = median(energy).item(), int(cost.argmin())
    length = float((path.steps[terms.kept] * terms.speed).sum())
    numbers = {
        "bound": bound,
        "gamma_max": terms.gamma.max().item(),
        "momentum2_max": momentum.max().item(),
        "hamiltonian": value,
        "hamiltonian_std": energy.std(correction=0).item(),
        "cost_min": cost.min().item(),
        "length": length,
        "place_of_min": path.places[:-1][terms.kept][narrowest].item(),
        "layers_dead": float((~terms.kept).sum()),
    }
    middle = value - numbers["cost_min"]
    below = -((length / depth + bound**0.5) ** 2)
    paper = -((length / depth + numbers["gamma_max"] ** 0.5 * numbers["momentum2_max"]) ** 2)
    own_below, own_above = (energy - cost).max().item() - below, bound - (energy - cost)[narrowest].item()
    statements = [
        at_least(
            "Theorem 4, first display, below",
            "−2H/L̃ − min COI_γ ≥ −(ℓ/L̃ + √(γc))²",
            middle,
            below,
            paper=paper,
            details={**numbers, "own_margin": own_below, "paper_margin": middle - paper},
            note="the paper has √γ·c, which is not what its proof gives: √(γc)",
        ),
        at_least(
            "Theorem 4, first display, above",
            "γc ≥ −2H/L̃ − min COI_γ",
            bound,
            middle,
            details={**numbers, "own_margin": own_above},
        ),
    ]
    gaps, own_gaps = (terms.speed - depth * (cost - h).clamp(min=0).sqrt() for h in (value, energy))
    low, high = -depth * bound**0.5, 2 * depth * bound**0.5
    numbers["layers_clipped"] = float((cost < value).sum())
    note = "the root's argument is clipped at 0" if numbers["layers_clipped"] else ""
    return [
        *statements,
        at_least(
            "Theorem 4, second display, below",
            "‖∂A‖ − L̃√(COI_γ + 2H/L̃)₊ ≥ −L̃√(γc), all layers",
            gaps.min().item(),
            low,
            details={**numbers, "own_margin": own_gaps.min().item() - low},
            note=note,
        ),
        at_least(
            "Theorem 4, second display, above",
            "2L̃√(γc) ≥ ‖∂A‖ − L̃√(COI_γ + 2H/L̃)₊, all layers",
            high,
            gaps.max().item(),
            details={**numbers, "own_margin": high - own_gaps.max().item()},
            note=note,
        ),
    ]


def proposition_5(paths: Sequence[RepresentationPath], gamma0: float = GAMMA) -> Statement:
    """Check Proposition 5: where a path is slow, A becomes non-negative as L̃ → ∞.

    The limit cannot be measured; a trend can. The rule, fixed beforehand: ‖A₋‖/‖A‖ at the layer of smallest
    cost of identity has a rank correlation (Spearman) with L̃ of at most −0.8, and is at most 0.05 at the
    largest L̃; or it is 0 at all of them. The margin is the smaller of the two. Left is the limit 0.05,
    right the ratio at the largest L̃. The details hold the ratios there, at p = 1/2 and at the layer of
    smallest speed ‖∂A‖/‖A‖, and `boundedness`, the speed at the chosen layer, which the Proposition assumes
    to be bounded.

    Args:
        paths: paths of networks that differ in L̃ only, with at least three values of L̃.
        gamma0: γ₀ of the cost.
    """
    from scipy.stats import spearmanr  # slow to import, and used only here

    depths = [path.effective_depth for path in paths]
    if len(set(depths)) < 3:
        raise InputError(f"Proposition 5: expected paths at three effective depths or more, got {depths}")
    details: dict[str, float] = {}
    chosen = []
    for path in sorted(paths, key=lambda path: path.effective_depth):
        points = measure_path(path, gamma0=gamma0, affinity=False, warn=False).points[:-1]
        speed = (path.velocities.norm(dim=(1, 2)) / path.representations[:-1].norm(dim=(1, 2))).numpy()
        shares, narrowest = points["negative"], int(points["cost_of_identity"].argmin())
        half = int((path.places[:-1] - 0.5).abs().argmin())
        chosen.append(float(shares[narrowest]))
        at = f"{path.effective_depth:g}"
        details |= {
            f"at_least_cost_{at}": chosen[-1],
            f"at_half_{at}": float(shares[half]),
            f"at_least_speed_{at}": float(shares[int(speed.argmin())]),
            f"boundedness_{at}": float(speed[narrowest]),
        }
    last, nowhere = chosen[-1], max(chosen) == 0
    trend = float(spearmanr(sorted(depths), chosen).statistic) if len(set(chosen)) > 1 else 0.0
    margin = VANISHED if nowhere else min(VANISHED - last, FALLING - trend)
    return Statement(
        "Proposition 5",
        "‖A₋‖/‖A‖ → 0 in the slow layers as L̃ grows",
        VANISHED,
        last,
        margin,
        math.nan,
        ROUNDING,
        bool(margin >= -ROUNDING),
        f"rank correlation with L̃ ≤ {FALLING:g}, and ‖A₋‖/‖A‖ ≤ {VANISHED:g} at the largest L̃, up to "
        f"{ROUNDING:g} for rounding; or 0 at all L̃",
        details={"rank_correlation": trend, **details},
        note="a trend over finitely many L̃, not the limit",
    )
