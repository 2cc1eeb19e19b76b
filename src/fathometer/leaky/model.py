"""A Leaky ResNet as an ordinary `nn.Module`, and the parts it is made of: the layer, the random weights.

The module takes samples first, `[samples, features]`; paths have them last, `[width, samples]`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

from fathometer.errors import InputError, check_choice, check_positive, check_whole
from fathometer.leaky.nonlinearity import Nonlinearity, nonlinearity
from fathometer.leaky.steps import as_steps, warn_of_long_steps

Maps: TypeAlias = Literal["learned", "fixed", "identity"]

INITIAL_STD = 0.058


def with_ones(s: Tensor) -> Tensor:
    """Append a row of ones to `[..., width, samples]`; the last column of W makes it a bias."""
    return torch.cat([s, torch.ones_like(s[..., :1, :])], -2)


def next_layer(
    a: Tensor, weight: Tensor, step: Tensor | float, effective_depth: float, sigma: Nonlinearity
) -> Tensor:
    """Compute α_l = (1 − ρ_l L̃) α_{l−1} + ρ_l W_l σ(α_{l−1}), `[samples, width]`."""
    moved = sigma.function(a) @ weight[:, :-1].mT + weight[:, -1]
    return (1 - step * effective_depth) * a + step * moved


def through_layers(
    start: Tensor, weights: Tensor, steps: Tensor, effective_depth: float, sigma: Nonlinearity
) -> Tensor:
    """Follow A_0, `[width, samples]`, through all layers: A_0 … A_L, `[layers + 1, width, samples]`."""
    path = [start.mT]
    for step, weight in zip(steps, weights, strict=True):
        path.append(next_layer(path[-1], weight, step, effective_depth, sigma))
    return torch.stack(path).mT.contiguous()


def random_generator(seed: int, purpose: str) -> torch.Generator:
    """Make a generator of random numbers for one purpose, independent of those for others.

    Example:
        >>> weights, inputs = random_generator(0, "weights"), random_generator(0, "inputs")
        >>> torch.equal(torch.rand(1, generator=weights), torch.rand(1, generator=inputs))
        False
    """
    number = check_whole("seed", seed)
    state = np.random.SeedSequence([number, crc32(purpose.encode())]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0]))


class LeakyResNet(nn.Module):
    """α_l = (1 − ρ_l L̃) α_{l−1} + ρ_l W_l σ(α_{l−1}), between an input and an output map.

    σ appends a 1, so that the last column of W_l is the bias. L̃ = 0 is a plain ResNet, L̃ → ∞ a
    fully connected network. Weights begin at L̃·I plus noise: the input passes through. Small weights would
    lose the input at large L̃.

    Attributes:
        weights: W, `[layers, width, width + 1]`.
        input_map: the input map, `[width, inputs]`.
        output_map: the output map, `[outputs, width]`.
        steps: ρ, `[layers]`.

    Args:
        inputs: dimension of the input.
        outputs: dimension of the output.
        width: dimension of the representation, the same at all depths.
        effective_depth: L̃.
        steps: ρ, positive and with the sum 1, or the number of layers for equidistant steps.
        sigma: the nonlinearity, by name; see `nonlinearity`.
        maps: whether the input and output maps are `learned`, `fixed` at their random start, or the fixed
            `identity` (padded with zeros).
        seed: seed of the weights.
        dtype: dtype of all tensors. Default: torch's.
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
        effective_depth, rho = float(effective_depth), as_steps(steps)
        if warn:
            warn_of_long_steps(rho, effective_depth)
        self.effective_depth, self.sigma, self.maps = effective_depth, nonlinearity(sigma), maps
        generator = random_generator(seed, "weights")

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        weights = INITIAL_STD * normal(len(rho), width, width + 1)
        weights[:, :, -1] = 0
        weights[:, :, :-1] += effective_depth * torch.eye(width, dtype=torch.float64)
        if maps == "identity":
            input_map, output_map = (torch.eye(*shape) for shape in ((width, inputs), (outputs, width)))
        else:
            input_map = normal(width, inputs) / math.sqrt(inputs)
            output_map = normal(outputs, width) / math.sqrt(width)
        dtype = dtype or torch.get_default_dtype()
        self.weights = nn.Parameter(weights.to(dtype))
        self.input_map = nn.Parameter(input_map.to(dtype), requires_grad=maps == "learned")
        self.output_map = nn.Parameter(output_map.to(dtype), requires_grad=maps == "learned")
        self.register_buffer("steps", rho.to(dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Map `[samples, inputs]` to `[samples, outputs]`."""
        a = x @ self.input_map.mT
        for step, weight in zip(self.steps, self.weights, strict=True):
            a = next_layer(a, weight, step, self.effective_depth, self.sigma)
        return a @ self.output_map.mT

    def representations(self, x: Tensor) -> Tensor:
        """Compute A_0 … A_L, `[layers + 1, width, samples]`, for x `[samples, inputs]`."""
        start = (x @ self.input_map.mT).mT
        return through_layers(start, self.weights, self.steps, self.effective_depth, self.sigma)

    def extra_repr(self) -> str:
        """Say what `print` shows."""
        layers, width, _ = self.weights.shape
        return (
            f"{self.input_map.shape[1]} → {width} → {self.output_map.shape[0]}, effective_depth="
            f"{self.effective_depth:g}, layers={layers}, sigma={self.sigma.name}, maps={self.maps}"
        )


def check_shape(inputs: int, outputs: int, width: int, effective_depth: float, maps: Maps) -> None:
    """Refuse sizes that no network has, and identity maps in a network that is too narrow."""
    for name, size in (("inputs", inputs), ("outputs", outputs), ("width", width)):
        check_whole(name, size, 1)
    check_positive("effective_depth", effective_depth, or_zero=True)
    check_choice("maps", maps, Maps)
    if maps == "identity" and width < max(inputs, outputs):
        raise InputError(
            f"identity maps need at least {max(inputs, outputs)}, the dimension of inputs and outputs,"
            f" got {width}; widen the network, or use learned maps",
            parameter="width",
        )
