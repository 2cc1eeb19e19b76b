"""L-BFGS for many problems at once, each with a line search of its own, one evaluation of all at a time.

The memory is kept as vectors, the recursion runs on their inner products alone (Chen, Wang and Zhou 2014,
"Large-scale L-BFGS using MapReduce"): two matrix products an iteration, whatever the number of problems. The
line search brackets the weak Wolfe conditions (Lewis and Overton 2013), which also works where the function
has kinks, as that of a ReLU network has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Function: TypeAlias = "Callable[[Tensor], tuple[Tensor, Tensor]]"
Numbers: TypeAlias = "npt.NDArray[np.float64]"

MEMORY = 20
ARMIJO, WOLFE = 1e-4, 0.9
MAX_TRIALS = 25  # of a line search, then the memory is cleared


class LBFGS:
    """Minimise f_1 … f_S together.

    Args:
        function: from points `[S, n]` to values `[S]` and gradients `[S, n]`.
        start: starting points, `[S, n]`, float64.

    Attributes:
        point: best points so far, `[S, n]`.
        value: values there, `[S]`.
        stuck: which problems no longer improve, `[S]`.

    Example:
        >>> centre = torch.tensor([[1.0, 2.0], [3.0, -4.0]], dtype=torch.float64)
        >>> scale = torch.tensor([1.0, 100.0], dtype=torch.float64)
        >>> function = lambda x: (((x - centre) ** 2 * scale).sum(1), 2 * (x - centre) * scale)
        >>> search = LBFGS(function, torch.zeros(2, 2, dtype=torch.float64))
        >>> for _ in range(20):
        ...     search.step()
        >>> bool((search.point - centre).abs().max() < 1e-6)
        True
    """

    def __init__(self, function: Function, start: Tensor) -> None:
        self._function = function
        self.point = start.clone()
        self.value, self._slope = function(self.point)
        count, size = start.shape
        self._basis = start.new_zeros(count, 2 * MEMORY + 1, size)  # s's, y's, and the gradient
        self._products = np.zeros((count, 2 * MEMORY + 1, 2 * MEMORY + 1))
        self._order: list[list[int]] = [[] for _ in range(count)]  # slots, the oldest first
        self._trials = np.zeros(count, dtype=np.int64)
        self.stuck = np.zeros(count, dtype=bool)
        self._low, self._high = np.zeros(count), np.full(count, np.inf)
        self._length = np.ones(count)
        self._direction = torch.zeros_like(self.point)
        self._descent = np.zeros(count)
        self._turn(np.ones(count, dtype=bool))

    @torch.no_grad()
    def step(self) -> None:
        """Evaluate all problems once, and move those whose trial point is good enough."""
        length = self._tensor(self._length)[:, None]
        trial = torch.addcmul(self.point, length, self._direction)
        value, slope = self._function(trial)
        ahead = (slope * self._direction).sum(1).cpu().numpy()
        lower = (value <= self.value + ARMIJO * length[:, 0] * self._tensor(self._descent)).cpu().numpy()
        flat = ahead >= WOLFE * self._descent
        taken = lower & flat & ~self.stuck
        self._high = np.where(lower, self._high, self._length)
        self._low = np.where(lower & ~flat, self._length, self._low)
        self._trials += 1
        between = np.where(np.isfinite(self._high), (self._low + self._high) / 2, 2 * self._length)
        self._length = np.where(taken, self._length, between)
        if taken.any():
            self._move(taken, trial, value, slope)
        lost = ~taken & (self._trials >= MAX_TRIALS)
        for number in np.flatnonzero(lost):
            self.stuck[number] |= not self._order[number]
            self._order[number] = []
        if taken.any() or lost.any():
            self._turn(taken | lost)

    def _move(self, taken: npt.NDArray[np.bool_], trial: Tensor, value: Tensor, slope: Tensor) -> None:
        """Move to good trial points; remember the step s and the change y of the gradient."""
        for number in np.flatnonzero(taken):
            order = self._order[number]
            slot = order.pop(0) if len(order) == MEMORY else len(order)
            torch.sub(trial[number], self.point[number], out=self._basis[number, slot])
            torch.sub(slope[number], self._slope[number], out=self._basis[number, MEMORY + slot])
            order.append(slot)
        where = self._tensor(taken)
        self.point = torch.where(where[:, None], trial, self.point)
        self._slope = torch.where(where[:, None], slope, self._slope)
        self.value = torch.where(where, value, self.value)

    def _turn(self, which: npt.NDArray[np.bool_]) -> None:
        """Choose a new direction for some of the problems."""
        self._basis[:, -1] = self._slope
        self._update_products()
        weights = np.zeros(self._products.shape[:2])
        for number in np.flatnonzero(which):
            weights[number] = _two_loops(self._products[number], self._order[number])
        fresh = torch.bmm(self._tensor(weights)[:, None], self._basis)[:, 0]
        self._direction = torch.where(self._tensor(which)[:, None], fresh, self._direction)
        descent = np.einsum("si,si->s", weights, self._products[:, -1])
        self._descent = np.where(which, descent, self._descent)
        self.stuck |= which & ~(descent < 0)
        first = np.array([not order for order in self._order])
        size = np.sqrt(self._products[:, -1, -1])
        start = np.where(first, 1 / np.maximum(size, 1.0), 1.0)  # a gradient alone says nothing about lengths
        self._length = np.where(which, start, self._length)
        self._low, self._high = np.where(which, 0.0, self._low), np.where(which, np.inf, self._high)
        self._trials = np.where(which, 0, self._trials)

    def _update_products(self) -> None:
        """Compute inner products with the newest s and y and the gradient; the others have not changed."""
        count = len(self._order)
        newest = [order[-1] if order else 0 for order in self._order]
        rows = torch.tensor([[n, MEMORY + n, 2 * MEMORY] for n in newest], device=self._basis.device)
        chosen = self._basis[torch.arange(count, device=rows.device)[:, None], rows]
        found = torch.bmm(chosen, self._basis.mT).cpu().numpy()
        for number, row in enumerate(rows.tolist()):
            self._products[number, row] = found[number]
            self._products[number][:, row] = found[number].T

    def _tensor(self, values: npt.NDArray[np.generic]) -> Tensor:
        kind = torch.bool if values.dtype == bool else self.point.dtype
        return torch.from_numpy(values).to(self.point.device, kind)


def _two_loops(products: Numbers, order: list[int]) -> Numbers:
    """Compute the direction −Hg as weights of the basis (s_1 … s_m, y_1 … y_m, g)."""
    weights = np.zeros(len(products))
    weights[-1] = -1.0
    if not order:
        return weights
    factors = {}
    for slot in reversed(order):
        factors[slot] = products[slot] @ weights / products[slot, MEMORY + slot]
        weights[MEMORY + slot] -= factors[slot]
    last = order[-1]
    weights *= products[last, MEMORY + last] / products[MEMORY + last, MEMORY + last]
    for slot in order:
        again = products[MEMORY + slot] @ weights / products[slot, MEMORY + slot]
        weights[slot] += factors[slot] - again
    return weights
