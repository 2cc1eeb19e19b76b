"""The Hamiltonian and the cost of identity along a path: appendix A.2, Theorem 4, Proposition 5.

Representations are `[layers + 1, width, samples]`. Of layer l are A_{l−1}, B_l and (A_l − A_{l−1})/ρ_l: the
network is symplectic Euler, and with these the identity of appendix A.2 is exact at a critical point. K
holds the bias's row of ones, without which there would be no Hamiltonian.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from fathometer.errors import InputError
from fathometer.leaky.energy import (
    GAMMA,
    gamma_of,
    hamiltonians,
    in_dimensions,
    kernel_norm2,
    require_depth,
    stable_identity,
)
from fathometer.leaky.measures import measure_path
from fathometer.leaky.nonlinearity import with_ones
from fathometer.leaky.path import RepresentationPath
from fathometer.leaky.stack import median
from fathometer.leaky.theory.statement import TRAINED, Statement, at_least, equal

MUCH_LESS = 0.02  # a spread that is called much less than another
FALLING, VANISHED = -0.8, 0.05  # Proposition 5: rank correlation with L̃, and the last negative share


def hamiltonian_identity(
    path: RepresentationPath, gamma0: float = GAMMA, tolerance: float = TRAINED
) -> Statement:
    """Appendix A.2: −2H/L̃ = ‖A‖² − ‖∂A/L̃ + γB‖² + γ‖B‖², norms in K + γI, in every layer.

    Sides are means over the layers; `error` is that of the worst layer, relative to ‖A‖² there.
    """
    momenta, _ = path.require_momenta()
    a, gamma = path.representations[:-1], gamma_of(path.images[:-1], gamma0)
    kept = alive(gamma)
    a, gamma = a[kept], gamma[kept]
    depth, velocity = path.effective_depth, path.velocities[kept]
    left, right = stable_identity(a, momenta[1:][kept], velocity, path.sigma, depth, gamma)
    scale = kernel_norm2(a, with_ones(path.images[:-1][kept]), gamma)
    return equal(
        "Appendix A.2",
        "−2H/L̃ = ‖A‖² − ‖∂A/L̃ + γB‖² + γ‖B‖² in K + γI",
        left.mean().item(),
        right.mean().item(),
        error=((left - right).abs() / scale).max().item(),
        tolerance=tolerance,
        measure="the largest difference of a layer over its ‖A‖²_(K+γI)",
        details={"gamma0": gamma0, "layers_dead": float((~kept).sum())},
    )


def hamiltonian_is_conserved(path: RepresentationPath, gamma0: float = GAMMA) -> Statement:
    """Section 1.5 and Figure 1c: −2H/L̃ is constant in p; it varies much less than the cost of identity.

    Right is the standard deviation of H, as the mean of H(A_{l−1}, B_l) and H(A_l, B_l); left is a fiftieth
    of that of the cost.
    """
    found = hamiltonians(path)
    terms = _terms(path, gamma0, None)
    spreads = [in_dimensions(h, path.effective_depth).std(correction=0).item() for h in found]
    cost = terms.cost.std(correction=0).item()
    return at_least(
        "Section 1.5, H is conserved",
        f"{MUCH_LESS:g} std(COI_γ) ≥ std(−2H/L̃) over the layers",
        MUCH_LESS * cost,
        spreads[2],
        details={"cost_std": cost, "staggered_std": spreads[0], "plain_std": spreads[1], "gamma0": gamma0},
    )


def theorem_4(path: RepresentationPath, gamma0: float = GAMMA, gamma: float | None = None) -> list[Statement]:
    """Theorem 4, both displays, both sides of each: four statements.

    With C = sup_p γ_p‖B_p‖², COI = ‖A‖²_(K+γI) and ℓ = ∫‖∂A‖_(K+γI) dp:
    −(ℓ/L̃ + √C)² ≤ −2H/L̃ − min_p COI_p ≤ C, and −L̃√C ≤ ‖∂A_p‖ − L̃√max(0, COI_p + 2H/L̃) ≤ 2L̃√C for all p.

    The paper's first bound has √γ·c with c = sup‖B‖², where its proof has √(γc); the literal value is in the
    details. The root's argument can be negative, by γ‖B‖² at most, and is clipped; with a γ that depends on
    p, the constant is C. H is the median over the layers; `own_slack` is with each layer's own H, for which
    the theorem is exact at a critical point, however few the layers.

    Args:
        path: of a trained network.
        gamma0: γ₀, for γ_p = γ₀‖K_p‖_op.
        gamma: one γ > 0 for all p instead, as the theorem has it.
    """
    if gamma is not None and not 0 < gamma < math.inf:
        raise InputError(f"gamma: expected a finite number > 0, got {gamma!r}")
    terms = _terms(path, gamma0, gamma)
    depth, root = path.effective_depth, terms.bound.sqrt().item()
    value, least = median(terms.energy).item(), int(terms.cost.argmin())
    middle, own = value - terms.cost.min().item(), float((terms.energy - terms.cost).max())
    length = float((path.steps[terms.kept] * terms.speed).sum())
    literal = float(terms.gamma.max().sqrt() * terms.momentum.max())
    numbers = {
        "bound": terms.bound.item(),
        "gamma_max": terms.gamma.max().item(),
        "momentum2_max": terms.momentum.max().item(),
        "hamiltonian": value,
        "hamiltonian_std": terms.energy.std(correction=0).item(),
        "cost_min": terms.cost.min().item(),
        "length": length,
        "place_of_min": path.places[:-1][terms.kept][least].item(),
        "layers_dead": float((~terms.kept).sum()),
    }
    below = -((length / depth + root) ** 2)
    paper = -((length / depth + literal) ** 2)
    first = [
        at_least(
            "Theorem 4, first display, below",
            "−2H/L̃ − min COI_γ ≥ −(ℓ/L̃ + √(γc))²",
            middle,
            below,
            details={
                **numbers,
                "own_slack": own - below,
                "paper_right": paper,
                "paper_slack": middle - paper,
            },
            note="the paper has √γ·c, which is not what its proof gives: √(γc)",
        ),
        at_least(
            "Theorem 4, first display, above",
            "γc ≥ −2H/L̃ − min COI_γ",
            terms.bound.item(),
            middle,
            details={**numbers, "own_slack": (terms.bound - terms.energy[least] + terms.cost[least]).item()},
        ),
    ]
    gaps = [terms.speed - depth * (terms.cost - h).clamp(min=0).sqrt() for h in (value, terms.energy)]
    second = []
    for side, limit, claim in (
        ("below", -depth * root, "‖∂A‖ − L̃√(COI_γ + 2H/L̃)₊ ≥ −L̃√(γc), all layers"),
        ("above", 2 * depth * root, "2L̃√(γc) ≥ ‖∂A‖ − L̃√(COI_γ + 2H/L̃)₊, all layers"),
    ):
        sign = 1 if side == "below" else -1
        worst, own_worst = ((sign * gap).min().item() * sign for gap in gaps)
        sides = (worst, limit) if side == "below" else (limit, worst)
        clipped = float((terms.cost < value).sum())
        details = {**numbers, "own_slack": sign * (own_worst - limit), "layers_clipped": clipped}
        note = "the root's argument is clipped at 0" if clipped else ""
        second.append(
            at_least(f"Theorem 4, second display, {side}", claim, *sides, details=details, note=note)
        )
    return first + second


def proposition_5(paths: Sequence[RepresentationPath], gamma0: float = GAMMA) -> Statement:
    """Proposition 5: where a path is slow, A becomes non-negative as L̃ → ∞.

    The limit cannot be seen; a trend can. The rule, fixed beforehand: ‖A₋‖/‖A‖ at the layer of least cost of
    identity has a rank correlation (Spearman) with L̃ of −.8 at most, and is below .05 at the largest L̃; or
    it is 0 at all of them. Left is the limit .05, right the ratio at the largest L̃. The details hold the
    ratios there, at p = 1/2 and at the layer of least speed ‖∂A‖/‖A‖, and `boundedness`, the speed at the
    chosen layer: the Proposition asks that it be bounded.

    Args:
        paths: of networks trained alike, at three effective depths or more.
        gamma0: γ₀ of the cost.
    """
    depths = [path.effective_depth for path in paths]
    if len(set(depths)) < 3:
        raise InputError(f"Proposition 5: expected paths at three effective depths or more, got {depths}")
    details: dict[str, float] = {}
    chosen = []
    for path in sorted(paths, key=lambda path: path.effective_depth):
        points = measure_path(path, gamma0=gamma0, affinity=False, warn=False).points[:-1]
        shares, cost = points["negative"].tolist(), points["cost_of_identity"].tolist()
        speed = (path.velocities.norm(dim=(1, 2)) / path.representations[:-1].norm(dim=(1, 2))).tolist()
        least, slowest = (min(range(len(speed)), key=values.__getitem__) for values in (cost, speed))
        half = int((path.places[:-1] - 0.5).abs().argmin())
        chosen.append(shares[least])
        at = f"{path.effective_depth:g}"
        details |= {
            f"at_least_cost_{at}": shares[least],
            f"at_half_{at}": shares[half],
            f"at_least_speed_{at}": shares[slowest],
            f"boundedness_{at}": speed[least],
        }
    trend, last, nowhere = _rank_correlation(sorted(depths), chosen), chosen[-1], max(chosen) == 0
    return Statement(
        "Proposition 5",
        "‖A₋‖/‖A‖ → 0 in the slow layers as L̃ grows",
        VANISHED,
        last,
        VANISHED if nowhere else min(VANISHED - last, FALLING - trend),
        bool(nowhere or (trend <= FALLING and last < VANISHED)),
        f"rank correlation with L̃ ≤ {FALLING:g}, and ‖A₋‖/‖A‖ < {VANISHED:g} at the largest L̃; or 0 at all L̃",
        {"rank_correlation": trend, **details},
        "a trend over finitely many L̃, not the limit",
    )


def _rank_correlation(depths: Sequence[float], values: Sequence[float]) -> float:
    """Spearman's; 0 where the values are all the same."""
    from scipy.stats import spearmanr  # slow to import, and of use here alone

    return float(spearmanr(depths, values).statistic) if len(set(values)) > 1 else 0.0


class _Terms(NamedTuple):
    energy: Tensor  # −2H_l/L̃
    cost: Tensor  # ‖A_{l−1}‖²_(K+γI)
    speed: Tensor  # ‖∂A_l‖_(K+γI)
    gamma: Tensor
    momentum: Tensor  # ‖B_l‖²
    bound: Tensor  # sup γ‖B‖²
    kept: Tensor  # which layers these are


def _terms(path: RepresentationPath, gamma0: float, gamma: float | None) -> _Terms:
    depth = require_depth(path.effective_depth)
    momenta, _ = path.require_momenta()
    images = path.images[:-1]
    ridge = gamma_of(images, gamma0) if gamma is None else images.new_full(images.shape[:1], gamma)
    kept = alive(ridge)
    kernel, ridge = with_ones(images[kept]), ridge[kept]
    momentum = momenta[1:][kept].square().sum((1, 2))
    return _Terms(
        in_dimensions(hamiltonians(path).staggered[kept], depth),
        kernel_norm2(path.representations[:-1][kept], kernel, ridge),
        kernel_norm2(path.velocities[kept], kernel, ridge).sqrt(),
        ridge,
        momentum,
        (ridge * momentum).max(),
        kept,
    )


def alive(gamma: Tensor) -> Tensor:
    """The layers with σ(A) ≠ 0: where γ_p = γ₀‖K_p‖ is 0, norms in K + γI are infinite and say nothing."""
    kept = gamma > 0
    if not bool(kept.any()):
        raise InputError("σ(A) is 0 in every layer: there are no energies to compare; give gamma, or train")
    return kept
