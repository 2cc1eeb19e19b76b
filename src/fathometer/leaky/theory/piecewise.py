"""The flow of one layer, ∂α = −L̃α + Wσ(α), to rounding: an integrator for the symmetries of section 1.2.

With ReLU the flow is linear until an entry changes its sign. General integrators step over such kinks and
err by 1e-10 or more at a tolerance of 1e-12. Here each linear piece is a Taylor series, and its end a root
of one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from torch import Tensor

from fathometer.errors import NumericalError
from fathometer.leaky.nonlinearity import Nonlinearity, with_ones

Vector = npt.NDArray[np.float64]

TERMS = 24  # of the series; a piece is short enough for the last to be 1/24! of the first
GRID = np.linspace(0, 1, 33)  # where signs are looked at within a piece
POWERS = GRID ** np.arange(TERMS)[:, None]
MOST_PIECES = 20_000
SMOOTH = 1e-12  # tolerance of the integrator for a smooth σ


def through_layer(start: Tensor, weight: Tensor, step: float, depth: float, sigma: Nonlinearity) -> Tensor:
    """α at the end of a layer of length ρ = `step` with constant W.

    Args:
        start: α, `[width, samples]`.
        weight: W, `[width, width + 1]`.
        step: ρ.
        depth: L̃.
        sigma: the nonlinearity; one that is neither `relu` nor `identity` goes to a general integrator.

    Example:
        >>> from fathometer.leaky.nonlinearity import nonlinearity
        >>> start, weight = torch.tensor([[1.0], [-1.0]]).double(), torch.zeros(2, 3).double()
        >>> round(through_layer(start, weight, 1.0, 2.0, nonlinearity("relu"))[0, 0].item(), 12)
        0.135335283237
    """
    if sigma.name not in ("relu", "identity"):
        return _smooth(start, weight, step, depth, sigma)
    matrix = weight.numpy()
    kinks = sigma.name == "relu"
    columns = [_linear_pieces(column, matrix, step, depth, kinks) for column in start.mT.numpy()]
    return torch.from_numpy(np.stack(columns, 1))


def _linear_pieces(x: Vector, weight: Vector, step: float, depth: float, kinks: bool) -> Vector:
    linear, constant = weight[:, :-1], weight[:, -1]
    longest = 1 / (np.linalg.norm(linear, 2) + depth + 1e-300)
    active = (x > 0) | ((x == 0) & (linear @ np.maximum(x, 0) + constant > 0)) | (not kinks)
    left = step
    for _ in range(MOST_PIECES):
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
    raise NumericalError("the flow changes signs without end: it could not be integrated; take other weights")


def _series(x: Vector, linear: Vector, constant: Vector, length: float, depth: float) -> Vector:
    """Taylor coefficients of α in p / length, `[width, TERMS]`."""
    terms = [x, length * (linear @ x - depth * x + constant)]
    for order in range(2, TERMS):
        terms.append(length / order * (linear @ terms[-1] - depth * terms[-1]))
    return np.stack(terms, 1)


def _root(series: Vector, cell: int) -> float:
    """Where a series changes its sign in the cell before GRID[cell]; an entry at 0 has left it."""
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
        raise NumericalError(f"the flow could not be integrated: {found.message}; take smaller weights")
    return torch.as_tensor(found.y[:, -1]).view_as(start)
