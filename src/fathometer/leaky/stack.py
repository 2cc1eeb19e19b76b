"""Many Leaky ResNets of one shape as one stack of tensors, with a forward and backward pass written by hand.

A stack of S networks has representations `[S, width, samples]`; what differs from layer to layer comes first,
`[layers, S, …]`. Networks never mix: each has its own data, depth, steps and decay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fathometer.errors import InputError
from fathometer.leaky.fusion import fused
from fathometer.leaky.model import LeakyResNet
from fathometer.leaky.nonlinearity import Nonlinearity
from fathometer.leaky.teacher import Task


class Parameters(NamedTuple):
    """What is learned, or its gradient.

    Attributes:
        weights: W, `[layers, S, width, width + 1]`, on a GPU with columns of zeros up to a multiple of 4.
        inward: `[S, width, inputs]`.
        outward: `[S, outputs, width]`.
    """

    weights: Tensor
    inward: Tensor
    outward: Tensor


class Losses(NamedTuple):
    """Of each network, `[S]`: the mean squared error, and the decay of its weights."""

    error: Tensor
    decay: Tensor


@dataclass(frozen=True, eq=False)
class Pointwise:
    """The two things done between matrix products, in place, so that a GPU can have them compiled.

    Attributes:
        bend: (a, s, c): s ← σ(a), a ← c a.
        pull_back: (t, s, g, c): t ← σ'(s) t + c g.
    """

    bend: Callable[[Tensor, Tensor, Tensor], object]
    pull_back: Callable[[Tensor, Tensor, Tensor, Tensor], object]


class Stack:
    """S networks on a device, ready to be trained.

    Args:
        nets: networks of one shape and one σ.
        tasks: the data of each.
        decays: μ of each: the loss is the mean squared error + μ/2 (Σ ρ_l ‖W_l‖² + ‖W_in‖² + ‖W_out‖²), the
            paper's λ/(2L̃) with μ = λ/L̃. Fixed maps do not decay.
        device: where.
        dtype: of all numbers.
    """

    def __init__(
        self,
        nets: Sequence[LeakyResNet],
        tasks: Sequence[Task],
        decays: Sequence[float],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        shapes = {(tuple(net.weights.shape), tuple(task.x.shape), tuple(task.y.shape)) for net, task in
                  zip(nets, tasks, strict=True)}  # fmt: skip
        if len(shapes) != 1 or len({(net.sigma.name, net.maps == "learned") for net in nets}) != 1:
            raise InputError("a stack: expected networks of one shape, one nonlinearity, one kind of maps")
        self.sigma, self.learned_maps = nets[0].sigma, nets[0].maps == "learned"
        self._nets = nets
        (layers, width, columns), samples = nets[0].weights.shape, len(tasks[0].x)
        self.layers, self.width, self.columns, self.samples = layers, width, columns, samples
        padded = -(-columns // 4) * 4 if device.type == "cuda" else columns  # aligned rows, twice the speed

        def put(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
            return torch.stack([t.detach() for t in tensors], axis).to(device, dtype).contiguous()

        weights = torch.zeros(layers, len(nets), width, padded, device=device, dtype=dtype)
        weights[..., :columns] = put([net.weights for net in nets], 1)
        self.parameters = Parameters(
            weights, put([net.inward for net in nets]), put([net.outward for net in nets])
        )
        self.gradients = Parameters(*map(torch.zeros_like, self.parameters))
        self.depths = put([torch.tensor(net.effective_depth) for net in nets])[:, None, None]
        self.decays = put([torch.tensor(decay, dtype=torch.float64) for decay in decays])[:, None, None]
        self.steps = put([net.steps for net in nets], 1)[..., None, None]  # [layers, S, 1, 1]
        self.leaks = 1 - self.steps * self.depths
        self.x, self.y = put([task.x.mT for task in tasks]), put([task.y.mT for task in tasks])
        self._a = torch.empty(len(nets), width, samples, device=device, dtype=dtype)
        self._s = torch.zeros(layers, len(nets), padded, samples, device=device, dtype=dtype)
        self._s[:, :, columns - 1] = 1
        self._g = torch.empty(layers + 1, len(nets), width, samples, device=device, dtype=dtype)
        self._stepped = torch.empty_like(weights)
        self._pointwise = pointwise(self.sigma, device)

    def __len__(self) -> int:
        return len(self.depths)

    def set_steps(self, steps: Tensor) -> None:
        """Other ρ, `[layers, S]`."""
        self.steps.copy_(steps[..., None, None])
        torch.sub(1, self.steps * self.depths, out=self.leaks)

    @torch.no_grad()
    def residuals(self) -> Tensor:
        """W_out A_L − Y, `[S, outputs, samples]`, by a forward pass that keeps σ(A_0) … σ(A_{L−1})."""
        weights, inward, outward = self.parameters
        torch.mul(weights, self.steps, out=self._stepped)
        a = torch.bmm(inward, self.x, out=self._a)
        for leak, weight, s in zip(self.leaks, self._stepped, self._s, strict=True):
            self._pointwise.bend(a, s[:, : self.width], leak)
            a.baddbmm_(weight, s)
        return torch.baddbmm(self.y, outward, a, beta=-1)

    @torch.no_grad()
    def differentiate(self) -> Tensor:
        """Fill `gradients` with those of the loss, and give the residuals.

        With G_l = ∂C/∂A_l: G_{l−1} = (1 − ρ_l L̃) G_l + ρ_l σ'(A_{l−1}) ⊙ (V_lᵀ G_l), and
        ∂/∂W_l = ρ_l (G_l σ(A_{l−1})ᵀ + μ W_l), the products of all layers at once.
        """
        residuals = self.residuals()
        out = residuals * (2 / residuals[0].numel())
        weights, inward, outward = self.parameters
        torch.bmm(outward.mT, out, out=self._g[-1])
        for layer in range(self.layers, 0, -1):
            g, t, s = self._g[layer], self._g[layer - 1], self._s[layer - 1][:, : self.width]
            torch.bmm(self._stepped[layer - 1][..., : self.width].mT, g, out=t)
            self._pointwise.pull_back(t, s, g, self.leaks[layer - 1])
        both = self.gradients.weights.flatten(0, 1)
        torch.bmm(self._g[1:].flatten(0, 1), self._s.flatten(0, 1).mT, out=both)
        self.gradients.weights.addcmul_(weights, self.decays).mul_(self.steps)
        if self.learned_maps:
            torch.bmm(self._g[0], self.x.mT, out=self.gradients.inward).addcmul_(inward, self.decays)
            torch.bmm(out, self._a.mT, out=self.gradients.outward).addcmul_(outward, self.decays)
        return residuals

    @torch.no_grad()
    def losses(self, residuals: Tensor | None = None) -> Losses:
        """The two parts of the loss, from a forward pass or from its residuals."""
        residuals = self.residuals() if residuals is None else residuals
        weights, inward, outward = self.parameters
        norms = (self.steps[..., 0] * weights.square().sum(-1)).sum((0, 2))
        if self.learned_maps:
            norms = norms + inward.square().sum((1, 2)) + outward.square().sum((1, 2))
        return Losses(residuals.square().mean((1, 2)), self.decays[:, 0, 0] / 2 * norms)

    @torch.no_grad()
    def criticality(self) -> Tensor:
        """The median over layers of ‖W_l − L̃ B_l σ(A_{l−1})ᵀ‖ / ‖W_l‖ for each network: `crit`, at best 0.

        It is ‖∂loss/∂W_l‖ / (μ ρ_l ‖W_l‖), so it takes a backward pass.
        """
        self.differentiate()
        slopes = torch.linalg.vector_norm(self.gradients.weights, dim=(-2, -1))
        sizes = torch.linalg.vector_norm(self.parameters.weights, dim=(-2, -1))
        return median(slopes / (self.decays * self.steps)[..., 0, 0] / sizes)

    @torch.no_grad()
    def moves(self) -> Tensor:
        """‖A_l − A_{l−1}‖ / ‖A_l‖ in every layer, `[layers, S]`."""
        weights, inward, _ = self.parameters
        before, found = inward @ self.x, []
        for step, depth_step, weight, s in zip(self.steps, 1 - self.leaks, weights, self._s, strict=True):
            s[:, : self.width] = self.sigma.function(before)
            change = step * (weight @ s) - depth_step * before
            before = before + change
            found.append(
                torch.linalg.vector_norm(change, dim=(1, 2)) / torch.linalg.vector_norm(before, dim=(1, 2))
            )
        return torch.stack(found)

    def store(self, which: Sequence[bool]) -> None:
        """Copy what was learned back into some of the networks."""
        weights, inward, outward = (part.detach().to("cpu", torch.float64) for part in self.parameters)
        steps = self.steps[..., 0, 0].to("cpu", torch.float64)
        with torch.no_grad():
            for number, net in enumerate(self._nets):
                if which[number]:
                    net.weights.copy_(weights[:, number, :, : self.columns])
                    net.inward.copy_(inward[number])
                    net.outward.copy_(outward[number])
                    net.steps.copy_(steps[:, number])

    def load_flat(self, points: Tensor) -> None:
        """Parameters from one row for each network, in the order of `Parameters`."""
        weights, inward, outward = self.parameters
        sizes = [weights[:, 0].numel(), inward[0].numel(), outward[0].numel()]
        parts = points.split(sizes, 1)
        weights.copy_(parts[0].view(len(self), *weights[:, 0].shape).transpose(0, 1))
        inward.copy_(parts[1].view_as(inward))
        outward.copy_(parts[2].view_as(outward))

    def state(self) -> dict[str, Tensor]:
        """Parameters and steps, by name."""
        return {**self.trimmed(self.parameters), "steps": self.steps}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """What `state` gave."""
        self.fill(self.parameters, tensors)
        self.set_steps(tensors["steps"][..., 0, 0].to(self.steps))

    def trimmed(self, parameters: Parameters) -> dict[str, Tensor]:
        """By name, without columns of zeros."""
        return {**parameters._asdict(), "weights": parameters.weights[..., : self.columns]}

    def fill(self, parameters: Parameters, tensors: dict[str, Tensor]) -> None:
        """Copy what `trimmed` gave."""
        for name, part in self.trimmed(parameters).items():
            if tensors[name].shape != part.shape:
                raise ValueError(f"{name} of shape {list(tensors[name].shape)}, not {list(part.shape)}")
            part.copy_(tensors[name])


def median(values: Tensor) -> Tensor:
    """Over the first axis, for an even number the mean of the middle two, as pandas has it (torch does not).

    Example:
        >>> median(torch.tensor([4.0, 1.0, 2.0, 9.0])).item()
        3.0
    """
    ordered, count = values.sort(0).values, len(values)
    return (ordered[(count - 1) // 2] + ordered[count // 2]) / 2


def pointwise(sigma: Nonlinearity, device: torch.device) -> Pointwise:
    """One kernel each on a GPU; on a CPU in place, with the kernels that torch has for ReLU."""
    if device.type == "cpu" and sigma.name == "relu":
        back = torch.ops.aten.threshold_backward.grad_input
        return Pointwise(
            lambda a, s, c: (torch.clamp_min(a, 0, out=s), a.mul_(c)),
            lambda t, s, g, c: back(t, s, 0, grad_input=t).addcmul_(g, c),
        )
    return Pointwise(
        fused(lambda a, s, c: (s.copy_(sigma.function(a)), a.mul_(c)), device),
        fused(lambda t, s, g, c: t.copy_(sigma.slope(s) * t + c * g), device),
    )
