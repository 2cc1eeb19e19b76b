"""The Lagrangian in three terms (section 1.3), and the weights at a critical point (section 1.5).

Representations are `[layers + 1, width, samples]`. Of layer l are A_{l−1}, B_l and ∂A = (A_l − A_{l−1})/ρ_l.
"""

from __future__ import annotations

from fathometer.leaky.critical import criticality
from fathometer.leaky.energy import GAMMA, Energies, energies, gamma_of, kernel_norm2, require_depth
from fathometer.leaky.measures import CRITICAL
from fathometer.leaky.nonlinearity import with_ones
from fathometer.leaky.path import RepresentationPath
from fathometer.leaky.stack import median
from fathometer.leaky.theory.bottleneck import alive
from fathometer.leaky.theory.statement import Statement, equal, relative

ALGEBRA = 1e-8


def three_terms(path: RepresentationPath, gamma0: float = GAMMA) -> Statement:
    """Section 1.3: 1/(2L̃) ‖L̃A + ∂A‖² = L̃/2 ‖A‖² + ⟨∂A, A⟩ + 1/(2L̃) ‖∂A‖², norms in K + γI.

    (L̃A + ∂A)² / (2L̃) has the cross term 2L̃⟨∂A, A⟩ / (2L̃): factor 1. The paper writes L̃⟨∂A, A⟩, which is
    `paper_right`. Plain algebra, for any path. Sides are sums over the layers, with weights ρ_l.
    """
    depth, gamma = require_depth(path.effective_depth), gamma_of(path.images[:-1], gamma0)
    kept = alive(gamma)
    rho, images = path.steps[kept], path.images[:-1][kept]
    whole = (depth * path.representations[:-1] + path.velocities)[kept]
    direct = kernel_norm2(whole, with_ones(images), gamma[kept]) / (2 * depth)
    parts = Energies(*(part[kept] for part in energies(path, gamma0)))
    left, right = ((rho * side).sum().item() for side in (direct, parts.lagrangian))
    literal = (rho * (parts.kinetic + depth * parts.cross - parts.potential)).sum().item()
    size = (rho * (parts.kinetic + parts.cross.abs() - parts.potential)).sum().item()
    return equal(
        "Section 1.3, three terms",
        "‖L̃A + ∂A‖²/(2L̃) = L̃/2 ‖A‖² + ⟨∂A, A⟩ + ‖∂A‖²/(2L̃)",
        left,
        right,
        error=abs(left - right) / max(size, 1e-300),
        tolerance=ALGEBRA,
        measure="the difference over the sum of the terms in size",
        details={"paper_right": literal, "paper_relative_gap": relative(left, literal), "gamma0": gamma0},
        note="the paper has L̃⟨∂A, A⟩; the factor is 1",
    )


def weights_from_momenta(path: RepresentationPath, tolerance: float = CRITICAL) -> Statement:
    """Section 1.5: W_l = L̃ B_l σ(A_{l−1})ᵀ at a critical point. All about Hamiltonians rests on it.

    In a plain ResNet it is W_l = B_l σ(A_{l−1})ᵀ; see `criticality`.

    Left is the tolerance, right the median over the layers of ‖W_l − L̃B_lσ(A_{l−1})ᵀ‖ / ‖W_l‖.
    """
    off = criticality(path)
    middle = median(off).item()
    return equal(
        "Section 1.5, weights",
        f"{tolerance:g} ≥ ‖W_l − {'L̃' if path.effective_depth else ''}B_lσ(A_{{l−1}})ᵀ‖ / ‖W_l‖",
        tolerance,
        middle,
        error=middle,
        tolerance=tolerance,
        measure="the median over the layers of the relative difference",
        details={"largest": off.max().item()},
    )
