"""The two symmetries of section 1.2: the range of integration, and the scale of the outputs.

Activations are `[width, samples]`, weights `[layers, width, width + 1]` with the bias in the last column.
Each symmetry is shown for the flow ∂α = −L̃α + Wσ(α) with the weights of a network, constant within a layer,
which is integrated layer by layer to rounding. With ReLU that flow is linear until an entry changes its sign.
General integrators step over such kinks and have errors of 1e-10 or more at a tolerance of 1e-12. Here each
linear piece is a Taylor series, and its end a root of one.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from torch import Tensor

from fathometer.errors import InputError, NumericalError, check_positive
from fathometer.leaky.model import through_layers, with_ones
from fathometer.leaky.nonlinearity import Nonlinearity
from fathometer.leaky.path import RepresentationPath
from fathometer.leaky.theory.statement import Statement, equal, relative

EXACT = 1e-10
FLOW_SAMPLES = 8  # samples move independently: a few of them are enough for the flow

Vector = npt.NDArray[np.float64]

TERMS = 24  # of the series; a piece is short enough for the last to be 1/24! of the first
GRID = np.linspace(0, 1, 33)  # places within a piece at which signs are checked
POWERS = GRID ** np.arange(TERMS)[:, None]
MAX_PIECES = 20_000
SMOOTH = 1e-12  # tolerance of the integrator for any other σ
PIECEWISE_LINEAR = ("relu", "identity")
INTEGRATED = 1e-6  # agreement of two flows that a general integrator computed


def integration_range(path: RepresentationPath, stretch: float = 3.0) -> list[Statement]:
    """Check that W'_q = W_{q/c}/c and L̃' = L̃/c on [0, c] give α'_q = α_{q/c} (section 1.2).

    The norm Σ ρ'_l ‖W'_l‖² is that of W divided by c. (Of the discrete network there is nothing to check:
    with ρ' = cρ its layers are the same expressions.)

    Args:
        path: a path with weights; both flows start at its A_0.
        stretch: c, finite and > 0.
    """
    c = check_positive("stretch", stretch)
    _, weights = path.require_momenta()
    rho, depth, few = path.steps, path.effective_depth, path.representations[0][:, :FLOW_SAMPLES]
    norm, stretched_norm = _norm(weights, rho) / c, _norm(weights / c, rho * c)
    return [
        _same(
            "integration range, flow",
            "W'_q = W_{q/c}/c and L̃' = L̃/c on [0, c]: the activations are the same",
            _flow(few, weights / c, rho * c, depth / c, path.sigma),
            _flow(few, weights, rho, depth, path.sigma),
            {"c": c},
            tolerance=_accuracy(path.sigma),
        ),
        equal(
            "Section 1.2, integration range, norm",
            "∫‖W'‖² = ∫‖W‖² / c",
            stretched_norm,
            norm,
            error=relative(stretched_norm, norm),
            tolerance=EXACT,
            measure="relative difference",
            details={"c": c},
        ),
    ]


def output_scaling(path: RepresentationPath, shift: float = 0.5, bias: bool = False) -> list[Statement]:
    """Check that L̃ → L̃ + c scales the path without biases down to e^{−cp} α_p (section 1.2).

    That is exact for the flow and a homogeneous σ. The discrete network has a form of its own: with
    r_l = (1 − ρ_l(L̃ + c)) / (1 − ρ_lL̃) and κ_l = r_1 ⋯ r_l, the weights r_l W_l give α'_l = κ_l α_l, since
    (1 − ρ_l(L̃ + c)) κ_{l−1} α_{l−1} + ρ_l r_l W_l σ(κ_{l−1} α_{l−1}) is r_l κ_{l−1} α_l for κ ≥ 0. As ρ → 0,
    r_l → 1 and κ_l → e^{−cp_l}.

    Args:
        path: a path with weights; their biases are left out.
        shift: c, with ρ_l (L̃ + c) < 1 for all layers.
        bias: whether to keep the biases, against the assumption: the symmetry is then lost.
    """
    if not math.isfinite(shift):
        raise InputError(f"expected a finite c, got {shift!r}", parameter="shift")
    _, weights = path.require_momenta()
    rho, depth, start, c = path.steps, path.effective_depth, path.representations[0], shift
    if not bool((rho * max(depth + c, depth) < 1).all()):
        limit = 1 / rho.max().item() - depth
        raise InputError(
            f"expected ρ(L̃ + c) < 1 in all layers, got c = {c:g}; use c < {limit:.3g}", parameter="shift"
        )
    if not bias:
        weights = torch.cat([weights[..., :-1], torch.zeros_like(weights[..., -1:])], -1)
    ratio = (1 - rho * (depth + c)) / (1 - rho * depth)
    kappa = torch.cat([torch.ones_like(ratio[:1]), ratio.cumprod(0)])
    decay = torch.exp(-c * path.places)
    few = start[:, :FLOW_SAMPLES]
    note = "biases kept, against the assumption" if bias else ""
    return [
        _same(
            "output scaling, network",
            "with L̃ + c and rW the activations are κα, r = (1 − ρ(L̃ + c))/(1 − ρL̃), κ = Πr",
            through_layers(start, ratio[:, None, None] * weights, rho, depth + c, path.sigma),
            kappa[:, None, None] * through_layers(start, weights, rho, depth, path.sigma),
            {"c": c, "kappa_from_exponential": float((kappa / decay - 1).abs().max())},
            note or "e^{−cp} is for the flow: `kappa_from_exponential` is how far the network is from it",
        ),
        _same(
            "output scaling, flow",
            "with L̃ + c the activations are e^{−cp} α_p",
            _flow(few, weights, rho, depth + c, path.sigma),
            decay[:, None, None] * _flow(few, weights, rho, depth, path.sigma),
            {"c": c},
            note,
            _accuracy(path.sigma),
        ),
    ]


def _same(
    name: str,
    claim: str,
    left: Tensor,
    right: Tensor,
    details: dict[str, float],
    note: str = "",
    tolerance: float = EXACT,
) -> Statement:
    """Compare activations, `[places, width, samples]`."""
    gaps = (left - right).norm(dim=(-2, -1)) / right.norm(dim=(-2, -1)).clamp(min=1e-300)
    return equal(
        f"Section 1.2, {name}",
        claim,
        left[-1].norm().item(),
        right[-1].norm().item(),
        error=gaps.max().item(),
        tolerance=tolerance,
        measure="the largest relative difference of the activations, over all places",
        details=details,
        note=note,
    )


def _flow(start: Tensor, weights: Tensor, rho: Tensor, depth: float, sigma: Nonlinearity) -> Tensor:
    """Integrate ∂α = −L̃α + W_l σ(α); return α at the ends of the layers, each of length ρ_l."""
    path = [start]
    for step, weight in zip(rho.tolist(), weights, strict=True):
        path.append(through_layer(path[-1], weight, step, depth, sigma))
    return torch.stack(path)


def _accuracy(sigma: Nonlinearity) -> float:
    """Return the tolerance for a flow; a general integrator steps over kinks that it does not know of."""
    return EXACT if sigma.name in PIECEWISE_LINEAR else INTEGRATED


def _norm(weights: Tensor, rho: Tensor) -> float:
    return float((rho * weights.square().sum((-2, -1))).sum())


def through_layer(start: Tensor, weight: Tensor, step: float, depth: float, sigma: Nonlinearity) -> Tensor:
    """Integrate ∂α = −L̃α + Wσ(α), α `[width, samples]`, over a layer of length ρ = `step` with constant W.

    A nonlinearity other than `relu` and `identity` takes a general integrator.

    Example:
        >>> from fathometer.leaky.nonlinearity import nonlinearity
        >>> start, weight = torch.tensor([[1.0], [-1.0]]).double(), torch.zeros(2, 3).double()
        >>> round(through_layer(start, weight, 1.0, 2.0, nonlinearity("relu"))[0, 0].item(), 12)
        0.135335283237
    """
    if sigma.name not in PIECEWISE_LINEAR:
        return _smooth(start, weight, step, depth, sigma)
    matrix = weight.numpy()
    kinks = sigma.name == "relu"
    columns = [_linear_pieces(column, matrix, step, depth, kinks) for column in start.mT.numpy()]
    return torch.from_numpy(np.stack(columns, 1))


def _linear_pieces(x: Vector, weight: Vector, step: float, depth: float, kinks: bool) -> Vector:
    linear, constant = weight[:, :-1], weight[:, -1]
    longest = 1 / (float(np.linalg.norm(linear, 2)) + depth + 1e-300)
    active = (x > 0) | ((x == 0) & (linear @ np.maximum(x, 0) + constant > 0)) | (not kinks)
    left = step
    for _ in range(MAX_PIECES):
        length = min(left, longest)
        series = _series(x, linear * active, constant, length, depth)
        values = series @ POWERS
        wrong = np.where(active[:, None], values < 0, values > 0) if kinks else np.zeros_like(values, bool)
        wrong[:, 0] = False
        cells = np.flatnonzero(wrong.any(0))
        if not cells.size:
            x, left = values[:, -1], left - length
            if left <= 0:
                return x
            continue
        cell = int(cells[0])
        place, entry = min((_root(series[i], cell), int(i)) for i in np.flatnonzero(wrong[:, cell]))
        x, left = series @ place ** np.arange(TERMS), left - place * length
        x[entry], active[entry] = 0.0, not active[entry]
    raise NumericalError("the flow changes signs too often to be integrated; use other weights")


def _series(x: Vector, linear: Vector, constant: Vector, length: float, depth: float) -> Vector:
    """Compute the Taylor coefficients of α in p / length, `[width, TERMS]`."""
    terms = [x, length * (linear @ x - depth * x + constant)]
    for order in range(2, TERMS):
        terms.append(length / order * (linear @ terms[-1] - depth * terms[-1]))
    return np.stack(terms, 1)


def _root(series: Vector, cell: int) -> float:
    """Find where a series changes its sign in the cell before GRID[cell]; an entry at 0 has just left it."""
    lower, upper = GRID[cell - 1] + (1e-3 * GRID[1] if cell == 1 and series[0] == 0 else 0), GRID[cell]

    def value(place: float) -> float:
        return float(series @ place ** np.arange(TERMS))

    return brentq(value, lower, upper, xtol=1e-16) if value(lower) * value(upper) < 0 else lower


def _smooth(start: Tensor, weight: Tensor, step: float, depth: float, sigma: Nonlinearity) -> Tensor:
    def slope(_: float, flat: Vector) -> Vector:
        a = torch.as_tensor(flat).view_as(start)
        return (weight @ with_ones(sigma.function(a)) - depth * a).flatten().numpy()

    first = start.flatten().numpy()
    found = solve_ivp(slope, (0.0, step), first, "DOP853", rtol=SMOOTH, atol=SMOOTH * abs(first).max())
    if not found.success:
        raise NumericalError(f"the flow could not be integrated: {found.message}; use smaller weights")
    return torch.as_tensor(found.y[:, -1]).view_as(start)
