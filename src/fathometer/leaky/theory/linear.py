"""Linear networks: the middle term of the Lagrangian can be integrated (footnote 1).

Representations are `[width, samples]`; σ = id, and no row of ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.leaky.nonlinearity import nonlinearity
from fathometer.leaky.path import RepresentationPath
from fathometer.leaky.theory.statement import Statement, equal

QUADRATURE = 1e-6
NODES = 32  # of Gauss–Legendre, in each piece
RANK = 1e-10  # singular values below this share of the largest are zeros

Curve = Callable[[float], Tensor]


def middle_term(
    curve: Curve, velocity: Curve, pieces: Sequence[float] = (0.0, 1.0), sigma: str = "identity"
) -> Statement:
    """Check footnote 1: ∫ Tr[∂A σ⁺σ⁺ᵀ Aᵀ] dp = log|A_1|₊ − log|A_0|₊ for σ = id.

    |·|₊ is the product of the non-zero singular values. With σ = id the integrand is Tr[∂A A⁺], the
    derivative of Σ log s_i, as long as the rank does not change.

    Args:
        curve: p ↦ A_p, smooth within each piece and of constant rank.
        velocity: p ↦ ∂_pA_p.
        pieces: 0, the places where the velocity may jump, and 1.
        sigma: another σ, to show that the statement holds only for linear networks.

    Example:
        >>> start = torch.eye(2, dtype=torch.float64)
        >>> found = middle_term(lambda p: start * (1 + p), lambda p: start)
        >>> found.holds, round(found.left, 6)
        (True, 1.386294)
    """
    function = nonlinearity(sigma).function
    nodes, shares = np.polynomial.legendre.leggauss(NODES)
    first, last = (_nonzero_values(curve(p).double()) for p in (pieces[0], pieces[-1]))
    integral, ranks = 0.0, {first.numel(), last.numel()}
    for lower, upper in pairwise(pieces):
        for node, share in zip(nodes.tolist(), shares.tolist(), strict=True):
            p = (lower + upper) / 2 + (upper - lower) / 2 * node
            a = curve(p).double()
            ranks.add(_nonzero_values(a).numel())
            inverse = torch.linalg.pinv(function(a), rtol=RANK)
            term = torch.trace(velocity(p).double() @ inverse @ inverse.mT @ a.mT).item()
            integral += (upper - lower) / 2 * share * term
    if len(ranks) > 1:
        raise InputError(
            f"the rank changes along the path ({sorted(ranks)}); footnote 1 needs a constant one"
        )
    ends = float(last.log().sum() - first.log().sum())
    return equal(
        "Footnote 1",
        "∫ Tr[∂A σ⁺σ⁺ᵀAᵀ] dp = log|A_1|₊ − log|A_0|₊",
        integral,
        ends,
        error=abs(integral - ends) / max(1.0, abs(ends)),
        tolerance=QUADRATURE,
        measure="difference over max(1, |right|)",
        details={"rank": float(first.numel()), "nodes": float(NODES * (len(pieces) - 1))},
        note="" if sigma == "identity" else "not a linear network: the footnote does not claim it",
    )


def linear_flow(path: RepresentationPath) -> Statement:
    """Check footnote 1 along the flow ∂A = (V_l − L̃) A of a linear network.

    Within layer l, A_p = exp((p − p_{l−1})(V_l − L̃)) A_{p_{l−1}}.

    Args:
        path: path of a network with σ = id; its biases are left out.
    """
    if path.sigma.name != "identity":
        raise InputError(f"footnote 1 is about linear networks, got σ = {path.sigma.name}")
    _, weights = path.require_momenta()
    eye = torch.eye(weights.shape[1], dtype=weights.dtype)
    generators = weights[..., :-1] - path.effective_depth * eye
    places = path.places.tolist()
    starts = [path.representations[0]]
    for generator, step in zip(generators, path.steps, strict=True):
        starts.append(torch.linalg.matrix_exp(step * generator) @ starts[-1])

    def layer(p: float) -> int:
        return sum(place <= p for place in places[1:-1])

    def curve(p: float) -> Tensor:
        number = layer(p)
        return torch.linalg.matrix_exp((p - places[number]) * generators[number]) @ starts[number]

    return middle_term(curve, lambda p: generators[layer(p)] @ curve(p), places)


def _nonzero_values(a: Tensor) -> Tensor:
    """Return the non-zero singular values."""
    values = torch.linalg.svdvals(a)
    return values[values > RANK * values.max()]
