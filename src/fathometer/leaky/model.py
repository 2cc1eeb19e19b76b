"""A Leaky ResNet as an ordinary `nn.Module`: samples come first, `[samples, features]`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from fathometer.errors import InputError
from fathometer.leaky.nonlinearity import nonlinearity
from fathometer.leaky.randomness import stream
from fathometer.leaky.steps import check_steps, check_whole, equidistant, given, is_positive

Maps: TypeAlias = Literal["learned", "fixed", "identity"]

INITIAL_STD = 0.058


class LeakyResNet(nn.Module):
    """α_l = (1 − ρ_l L̃) α_{l−1} + ρ_l W_l σ(α_{l−1}), between an input and an output map.

    σ appends a 1, so that the last column of W_l is the bias. L̃ = 0 is a plain ResNet, L̃ → ∞ a
    fully connected network. Weights begin at L̃·I plus noise, which lets everything through; small ones
    would forget the input at large L̃.

    Attributes:
        weights: W, `[layers, width, width + 1]`.
        inward: the input map, `[width, inputs]`.
        outward: the output map, `[outputs, width]`.
        steps: ρ, `[layers]`.

    Args:
        inputs: dimension of the input.
        outputs: dimension of the output.
        width: dimension of the representation, the same at all depths.
        effective_depth: L̃.
        steps: ρ, positive and with the sum 1, or the number of layers for equidistant ones.
        sigma: the nonlinearity, `relu`, `softplus` or `identity`.
        maps: whether the input and output maps are `learned`, `fixed` as drawn, or the fixed `identity`
            (padded with zeros).
        seed: of the weights.
        dtype: of everything; torch's default if left out.
        warn: whether to warn of steps with ρL̃ ≥ 1.

    Example:
        >>> net = LeakyResNet(3, 2, width=8, effective_depth=2.0, steps=5)
        >>> net(torch.randn(10, 3)).shape, net.representations(torch.randn(10, 3)).shape
        (torch.Size([10, 2]), torch.Size([6, 8, 10]))
    """

    steps: Tensor

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        width: int,
        effective_depth: float,
        steps: Tensor | Sequence[float] | int,
        sigma: str = "relu",
        maps: Maps = "learned",
        seed: int = 0,
        dtype: torch.dtype | None = None,
        warn: bool = True,
    ) -> None:
        super().__init__()
        check_shape(inputs, outputs, width, effective_depth, maps)
        rho = equidistant(steps) if isinstance(steps, int) else given(steps)
        if warn:
            check_steps(rho, effective_depth)
        self.effective_depth, self.sigma, self.maps = float(effective_depth), nonlinearity(sigma), maps
        drawn = stream(seed, "weights")
        weights = INITIAL_STD * torch.randn(len(rho), width, width + 1, generator=drawn, dtype=torch.float64)
        weights[:, :, -1] = 0
        weights[:, :, :-1] += effective_depth * torch.eye(width, dtype=torch.float64)
        dtype = dtype or torch.get_default_dtype()
        self.weights = nn.Parameter(weights.to(dtype))
        inward, outward = _drawn_maps(inputs, outputs, width, maps, drawn)
        self.inward = nn.Parameter(inward.to(dtype), requires_grad=maps == "learned")
        self.outward = nn.Parameter(outward.to(dtype), requires_grad=maps == "learned")
        self.register_buffer("steps", rho.to(dtype))

    def forward(self, x: Tensor) -> Tensor:
        """`[samples, inputs]` to `[samples, outputs]`."""
        a = x @ self.inward.mT
        for step, weight in zip(self.steps, self.weights, strict=True):
            a = self._layer(a, step, weight)
        return a @ self.outward.mT

    def representations(self, x: Tensor) -> Tensor:
        """A_0 … A_L, `[layers + 1, width, samples]`, for x `[samples, inputs]`."""
        path = [x @ self.inward.mT]
        for step, weight in zip(self.steps, self.weights, strict=True):
            path.append(self._layer(path[-1], step, weight))
        return torch.stack(path).mT

    def extra_repr(self) -> str:
        """What `print` shows."""
        layers, width, _ = self.weights.shape
        return (
            f"{self.inward.shape[1]} → {width} → {self.outward.shape[0]}, effective_depth="
            f"{self.effective_depth:g}, layers={layers}, sigma={self.sigma.name}, maps={self.maps}"
        )

    def _layer(self, a: Tensor, step: Tensor, weight: Tensor) -> Tensor:
        moved = self.sigma.function(a) @ weight[:, :-1].mT + weight[:, -1]
        return (1 - step * self.effective_depth) * a + step * moved


def check_depth(effective_depth: object) -> None:
    """Complain of what is no L̃."""
    if isinstance(effective_depth, bool) or (effective_depth != 0 and not is_positive(effective_depth)):
        raise InputError(f"effective_depth: expected a finite number from 0, got {effective_depth!r}")


def check_shape(inputs: int, outputs: int, width: int, effective_depth: float, maps: Maps) -> None:
    """Complain of what cannot be built."""
    for name, size in (("inputs", inputs), ("outputs", outputs), ("width", width)):
        check_whole(name, size)
    check_depth(effective_depth)
    if maps not in ("learned", "fixed", "identity"):
        raise InputError(f"maps: expected learned, fixed or identity, got {maps!r}")
    if maps == "identity" and width < max(inputs, outputs):
        raise InputError(
            f"width: identity maps need at least {max(inputs, outputs)}, the dimension of inputs and outputs,"
            f" got {width}; widen the network, or let the maps be learned"
        )


def _drawn_maps(
    inputs: int, outputs: int, width: int, maps: Maps, drawn: torch.Generator
) -> tuple[Tensor, Tensor]:
    if maps == "identity":
        return torch.eye(width, inputs, dtype=torch.float64), torch.eye(outputs, width, dtype=torch.float64)
    inward = torch.randn(width, inputs, generator=drawn, dtype=torch.float64) / math.sqrt(inputs)
    outward = torch.randn(outputs, width, generator=drawn, dtype=torch.float64) / math.sqrt(width)
    return inward, outward
