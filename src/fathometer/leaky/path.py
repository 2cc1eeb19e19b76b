"""The path A_p that a representation takes, with its momenta B_p and weights W_p.

Representations are `[width, samples]`, as in the paper, stacked along the path; everything is float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fathometer.errors import InputError, check_positive
from fathometer.leaky.model import LeakyResNet, through_layers
from fathometer.leaky.nonlinearity import Nonlinearity, nonlinearity
from fathometer.leaky.steps import custom_steps, equidistant, places


@dataclass(frozen=True, eq=False, repr=False)
class RepresentationPath:
    """A_0 … A_L at p_0 … p_L, with momenta and weights if they are known.

    Attributes:
        representations: A, `[layers + 1, width, samples]`.
        steps: ρ, `[layers]`.
        effective_depth: L̃.
        sigma: the nonlinearity.
        momenta: B, `[layers + 1, width, samples]`, or None.
        weights: W, `[layers, width, width + 1]`, or None.
    """

    representations: Tensor
    steps: Tensor
    effective_depth: float
    sigma: Nonlinearity
    momenta: Tensor | None = None
    weights: Tensor | None = None

    def __repr__(self) -> str:
        points, width, samples = self.representations.shape
        known = "with" if self.momenta is not None else "without"
        return (
            f"RepresentationPath({points} points, width {width}, {samples} samples, L̃ = "
            f"{self.effective_depth:g}, {self.sigma.name}, {known} momenta)"
        )

    @property
    def places(self) -> Tensor:
        """p_0 = 0 … p_L = 1."""
        return places(self.steps)

    @property
    def images(self) -> Tensor:
        """σ(A), without the row of ones, `[layers + 1, width, samples]`."""
        return self.sigma.function(self.representations)

    @property
    def velocities(self) -> Tensor:
        """∂_p A at p_0 … p_{L−1} as forward differences (A_l − A_{l−1}) / ρ_l, `[layers, width, samples]`."""
        return self.representations.diff(dim=0) / self.steps[:, None, None]

    def require_momenta(self) -> tuple[Tensor, Tensor]:
        """Return B and W, or raise an error if the path has only representations."""
        if self.momenta is None or self.weights is None:
            raise InputError("this path has no momenta and weights; path_of(network, …) gives them")
        return self.momenta, self.weights


@torch.no_grad()
def path_of(net: LeakyResNet, x: Tensor, y: Tensor, decay: float) -> RepresentationPath:
    """Compute the path of a network on its training data, by one pass forward and one back.

    The loss is C + λ/(2L̃) Σ ρ_l ‖W_l‖² with C the mean squared error over samples and outputs, and
    B_l = −(1/λ) ∂C/∂A_l: B_L = 2/(λ N d_out) W_outᵀ (Y − W_out A_L), and
    B_{l−1} = (1 − ρ_l L̃) B_l + ρ_l σ'(A_{l−1}) ⊙ (V_lᵀ B_l) with V the weights without the bias. (The paper's
    B_1 = 2/(λN)(Y − A_1) belongs to C = ‖Y − A_1‖²/N, without an output map.)

    Args:
        net: the network; it is measured in float64 whatever its dtype.
        x: inputs, `[samples, inputs]`.
        y: outputs, `[samples, outputs]`.
        decay: λ.
    """
    decay = check_positive("decay", decay)
    weights, input_map, output_map = (
        t.detach().double() for t in (net.weights, net.input_map, net.output_map)
    )
    steps, depth = net.steps.double(), net.effective_depth
    x, y = (torch.as_tensor(side).to(input_map) for side in (x, y))
    _check_data(x, y, input_map.shape[1], output_map.shape[0])
    forward = through_layers(input_map @ x.mT, weights, steps, depth, net.sigma)
    backward = [2 / (decay * y.numel()) * output_map.mT @ (y.mT - output_map @ forward[-1])]
    for step, weight, a in zip(steps.flip(0), weights.flip(0), forward[:-1].flip(0), strict=True):
        b = backward[-1]
        backward.append((1 - step * depth) * b + step * net.sigma.slope(a) * (weight[:, :-1].mT @ b))
    return RepresentationPath(forward, steps, depth, net.sigma, torch.stack(backward[::-1]), weights)


def path_through(
    representations: Tensor,
    effective_depth: float = 1.0,
    steps: Tensor | Sequence[float] | None = None,
    sigma: str = "relu",
) -> RepresentationPath:
    """Make a path through any two or more representations, `[points, width, samples]`."""
    effective_depth = check_positive("effective_depth", effective_depth, or_zero=True)
    if representations.ndim != 3 or len(representations) < 2:
        raise InputError(
            f"expected [points, width, samples] with two points or more, got {list(representations.shape)}",
            parameter="representations",
        )
    rho = equidistant(len(representations) - 1) if steps is None else custom_steps(steps)
    if len(rho) != len(representations) - 1:
        raise InputError(
            f"expected {len(representations) - 1}, one fewer than points, got {len(rho)}", parameter="steps"
        )
    return RepresentationPath(
        representations.detach().double(),
        rho.to(representations.device),
        effective_depth,
        nonlinearity(sigma),
    )


def _check_data(x: Tensor, y: Tensor, inputs: int, outputs: int) -> None:
    hint = "give the data that the network was trained with"
    if x.ndim != 2 or x.shape[1] != inputs or not len(x):
        raise InputError(f"expected [samples, {inputs}], got {list(x.shape)}; {hint}", parameter="x")
    if y.shape != (len(x), outputs):
        raise InputError(
            f"expected {[len(x), outputs]}, a row for each sample of x, got {list(y.shape)}; {hint}",
            parameter="y",
        )
