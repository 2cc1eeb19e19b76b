"""The two symmetries of section 1.2: the range of integration, and the scale of the outputs.

Activations are `[width, samples]`, weights `[layers, width, width + 1]` with the bias in the last column.
Each symmetry is shown for the discrete network, where it is exact, and for the flow with the same weights,
constant within a layer, which is integrated layer by layer to rounding.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.leaky.nonlinearity import Nonlinearity
from fathometer.leaky.path import RepresentationPath, through_layers
from fathometer.leaky.theory.piecewise import through_layer
from fathometer.leaky.theory.statement import Statement, equal, relative

EXACT = 1e-10
FLOW_SAMPLES = 8  # samples move independently: a few of them are enough for the flow


def integration_range(path: RepresentationPath, stretch: float = 3.0) -> list[Statement]:
    """Stretching the range to [0, c] with W'_q = W_{q/c}/c and L̃' = L̃/c gives α'_q = α_{q/c} (section 1.2).

    The norm Σ ρ'_l ‖W'_l‖² is that of W divided by c. For the discrete network ρ' = cρ.

    Args:
        path: a path with weights; both networks start at its A_0.
        stretch: c, finite and > 0.
    """
    if not 0 < stretch < math.inf:
        raise InputError(f"stretch: expected a finite c > 0, got {stretch!r}")
    _, weights = path.require_momenta()
    rho, depth, start, c = path.steps, path.effective_depth, path.representations[0], stretch
    plain = through_layers(start, weights, rho, depth, path.sigma)
    stretched = through_layers(start, weights / c, rho * c, depth / c, path.sigma)
    few = start[:, :FLOW_SAMPLES]
    flow = _flow(few, weights, rho, depth, path.sigma)
    flow_stretched = _flow(few, weights / c, rho * c, depth / c, path.sigma)
    norm = _norm(weights, rho)
    norm_stretched = _norm(weights / c, rho * c)
    shape = "W'_q = W_{q/c}/c and L̃' = L̃/c on [0, c]"
    return [
        _same("network", f"{shape}: the activations are the same", stretched, plain, "integration range", c),
        _same("flow", f"{shape}: the activations are the same", flow_stretched, flow, "integration range", c),
        equal(
            "Section 1.2, integration range, norm",
            "∫‖W'‖² = ∫‖W‖² / c",
            norm_stretched,
            norm / c,
            error=relative(norm_stretched, norm / c),
            tolerance=EXACT,
            measure="relative difference",
            details={"c": c},
        ),
    ]


def output_scaling(path: RepresentationPath, shift: float = 0.5, bias: bool = False) -> list[Statement]:
    """L̃ → L̃ + c scales the path without biases down to e^{−cp} α_p (section 1.2).

    That is exact for the flow and a homogeneous σ. The discrete network has a form of its own: with
    r_l = (1 − ρ_l(L̃ + c)) / (1 − ρ_lL̃) and κ_l = r_1 ⋯ r_l, the weights r_l W_l give α'_l = κ_l α_l, since
    (1 − ρ_l(L̃ + c)) κ_{l−1} α_{l−1} + ρ_l r_l W_l σ(κ_{l−1} α_{l−1}) is r_l κ_{l−1} α_l for κ ≥ 0. As ρ → 0,
    r_l → 1 and κ_l → e^{−cp_l}.

    Args:
        path: a path with weights; their biases are left out.
        shift: c, with ρ_l (L̃ + c) < 1 for all layers.
        bias: keep the biases, against the assumption: the symmetry is then lost.
    """
    if not math.isfinite(shift):
        raise InputError(f"shift: expected a finite c, got {shift!r}")
    _, weights = path.require_momenta()
    rho, depth, start, c = path.steps, path.effective_depth, path.representations[0], shift
    if not bool((rho * max(depth + c, depth) < 1).all()):
        least = 1 / rho.max().item() - depth
        raise InputError(f"shift: expected ρ(L̃ + c) < 1 in all layers, got c = {c:g}; take c < {least:.3g}")
    if not bias:
        weights = torch.cat([weights[..., :-1], torch.zeros_like(weights[..., -1:])], -1)
    ratio = (1 - rho * (depth + c)) / (1 - rho * depth)
    kappa = torch.cat([torch.ones_like(ratio[:1]), ratio.cumprod(0)])
    decay = torch.exp(-c * path.places)
    plain = through_layers(start, weights, rho, depth, path.sigma)
    scaled = through_layers(start, ratio[:, None, None] * weights, rho, depth + c, path.sigma)
    few = start[:, :FLOW_SAMPLES]
    flow = _flow(few, weights, rho, depth, path.sigma)
    flow_scaled = _flow(few, weights, rho, depth + c, path.sigma)
    note = "biases kept, against the assumption" if bias else ""
    return [
        _same(
            "network",
            "with L̃ + c and r_lW_l the activations are κ_l α_l, r_l = (1 − ρ_l(L̃ + c))/(1 − ρ_lL̃), κ_l = Π r",
            scaled,
            kappa[:, None, None] * plain,
            "output scaling",
            c,
            note or "e^{−cp} is for the flow: `kappa_from_exponential` is how far the network is from it",
            {"kappa_from_exponential": float((kappa / decay - 1).abs().max())},
        ),
        _same(
            "flow",
            "with L̃ + c the activations are e^{−cp} α_p",
            flow_scaled,
            decay[:, None, None] * flow,
            "output scaling",
            c,
            note,
        ),
    ]


def _same(
    kind: str,
    claim: str,
    left: Tensor,
    right: Tensor,
    symmetry: str,
    c: float,
    note: str = "",
    details: dict[str, float] | None = None,
) -> Statement:
    gaps = (left - right).norm(dim=(-2, -1)) / right.norm(dim=(-2, -1)).clamp(min=1e-300)
    return equal(
        f"Section 1.2, {symmetry}, {kind}",
        claim,
        left[-1].norm().item(),
        right[-1].norm().item(),
        error=gaps.max().item(),
        tolerance=EXACT,
        measure="the largest relative difference of the activations, over all places",
        details={"c": c, **(details or {})},
        note=note,
    )


def _flow(start: Tensor, weights: Tensor, rho: Tensor, depth: float, sigma: Nonlinearity) -> Tensor:
    """∂α = −L̃α + W_l σ(α) at the ends of the layers, each of length ρ_l."""
    path = [start]
    for step, weight in zip(rho.tolist(), weights, strict=True):
        path.append(through_layer(path[-1], weight, step, depth, sigma))
    return torch.stack(path)


def _norm(weights: Tensor, rho: Tensor) -> float:
    return float((rho * weights.square().sum((-2, -1))).sum())
