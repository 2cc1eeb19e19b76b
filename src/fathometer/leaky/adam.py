"""Adam and plain gradient descent for a stack of networks, each with a learning rate of its own."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fathometer.leaky.stack import Parameters, Stack, compile_on_gpu

FLAT = 0.3  # share of the epochs with a constant rate, then it follows a cosine
FLOOR = 1e-4  # down to this share of the rate
BETAS = (0.9, 0.99)
EPSILON = 1e-16


def cosine(epochs: int) -> Tensor:
    """Compute the factor of the learning rate in each epoch, `[epochs]`: first 1, then along a cosine.

    Example:
        >>> [round(rate, 2) for rate in cosine(6).tolist()]
        [1.0, 1.0, 1.0, 0.85, 0.5, 0.15]
    """
    start = round(FLAT * epochs)
    angle = (torch.arange(epochs, dtype=torch.float64) - start).clamp(min=0) * (
        math.pi / max(epochs - start, 1)
    )
    return FLOOR + (1 - FLOOR) * (1 + angle.cos()) / 2


class Descent:
    """θ ← θ − η_t g.

    Everything that changes from epoch to epoch lives in tensors, so that a CUDA graph can replay a step.

    Args:
        stack: the networks; `step` uses its gradients.
        learning_rates: one for each network.
        schedule: factor of the learning rates in each epoch, `[epochs]`.

    Attributes:
        epoch: number of steps so far, a tensor with one entry.
    """

    def __init__(self, stack: Stack, learning_rates: list[float], schedule: Tensor) -> None:
        self._stack = stack
        self._rates = torch.tensor(learning_rates, dtype=torch.float64).to(stack.decays)[:, None, None]
        self._sizes = schedule.to(stack.decays)
        self.epoch = torch.zeros(1, dtype=torch.long, device=stack.decays.device)

    @torch.no_grad()
    def step(self) -> None:
        """Train for one epoch: gradients, then the update."""
        self._stack.differentiate()
        size = self._sizes.index_select(0, self.epoch) * self._rates
        for number in range(len(Parameters._fields) if self._stack.learned_maps else 1):
            self._move(number, size)
        self.epoch += 1

    def _move(self, number: int, size: Tensor) -> None:
        """Update one of the parameters."""
        self._stack.parameters[number].addcmul_(self._stack.gradients[number], size, value=-1)

    def state(self) -> dict[str, Tensor]:
        """Return by name what `load` takes."""
        return {"epoch": self.epoch}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Set what `state` returned."""
        self.epoch.copy_(tensors["epoch"])


class Adam(Descent):
    """m ← β₁m + (1 − β₁)g, v ← β₂v + (1 − β₂)g², θ ← θ − η_t m / (√v + ε), where η_t corrects for the start.

    Attributes:
        first: m.
        second: v.
    """

    def __init__(self, stack: Stack, learning_rates: list[float], schedule: Tensor) -> None:
        number = torch.arange(1, len(schedule) + 1, dtype=torch.float64)
        corrections = (1 - BETAS[1] ** number).sqrt() / (1 - BETAS[0] ** number)
        super().__init__(stack, learning_rates, schedule * corrections)
        self.first = Parameters(*map(torch.zeros_like, stack.parameters))
        self.second = Parameters(*map(torch.zeros_like, stack.parameters))
        self._update = compile_on_gpu(_update, stack.decays.device)

    def _move(self, number: int, size: Tensor) -> None:
        parts = (self._stack.parameters, self._stack.gradients, self.first, self.second)
        p, g, m, v = (part[number] for part in parts)
        self._update(p, g, m, v, size)

    def state(self) -> dict[str, Tensor]:
        """Return m, v and the epoch by name."""
        moments = {"first": self.first, "second": self.second}
        named = {
            f"{moment}.{name}": part
            for moment, parts in moments.items()
            for name, part in self._stack.trimmed(parts).items()
        }
        return {**named, **super().state()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Set what `state` returned."""
        for moment, parts in {"first.": self.first, "second.": self.second}.items():
            own = {k.removeprefix(moment): v for k, v in tensors.items() if k.startswith(moment)}
            self._stack.fill(parts, own)
        super().load(tensors)


def _update(p: Tensor, g: Tensor, m: Tensor, v: Tensor, size: Tensor) -> None:
    m.lerp_(g, 1 - BETAS[0])
    v.mul_(BETAS[1]).addcmul_(g, g, value=1 - BETAS[1])
    p.sub_(size * m / (v.sqrt() + EPSILON))
