"""Many Leaky ResNets of one shape as one stack of tensors, with a forward and backward pass written by hand.

A stack of S networks has representations `[S, width, samples]`; what differs from layer to layer comes first,
`[layers, S, …]`. Networks never mix: each has its own data, depth, steps and decay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from fathometer.leaky.energy import median
from fathometer.leaky.model import LeakyResNet
from fathometer.leaky.nonlinearity import Nonlinearity
from fathometer.leaky.teacher import Task

Function = TypeVar("Function", bound="Callable[..., object]")


class Parameters(NamedTuple):
    """Learned parameters, or their gradients."""

    # W, `[layers, S, width, width + 1]`, on a GPU with columns of zeros up to a multiple of 4
    weights: Tensor
    input_map: Tensor  # `[S, width, inputs]`
    output_map: Tensor  # `[S, outputs, width]`


class Losses(NamedTuple):
    """The mean squared error and the weight decay of each network, `[S]`."""

    error: Tensor
    decay: Tensor


class Pointwise(NamedTuple):
    """The two operations between matrix products, in place; on a GPU they are compiled."""

    activate: Callable[[Tensor, Tensor, Tensor, Tensor], object]  # (a, s, d, c): s, d ← σ(a), σ'(a), a ← c a
    backward: Callable[[Tensor, Tensor, Tensor, Tensor], object]  # (t, d, g, c): t ← d t + c g


class Stack:
    """S networks on a device, ready to be trained.

    Args:
        nets: networks of one shape, one σ and one kind of maps.
        tasks: the data of each.
        decays: μ of each: the loss is the mean squared error + μ/2 (Σ ρ_l ‖W_l‖² + ‖W_in‖² + ‖W_out‖²), the
            paper's λ/(2L̃) with μ = λ/L̃. Fixed maps do not decay.
        device: device of all tensors.
        dtype: dtype of all tensors.
    """

    def __init__(
        self,
        nets: Sequence[LeakyResNet],
        tasks: Sequence[Task],
        decays: Sequence[float],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.sigma, self.learned_maps = nets[0].sigma, nets[0].maps == "learned"
        self._nets = nets
        (layers, width, columns), samples = nets[0].weights.shape, len(tasks[0].x)
        self.layers, self.width, self.columns, self.samples = layers, width, columns, samples
        padded = -(-columns // 4) * 4 if device.type == "cuda" else columns  # aligned rows are twice as fast

        def put(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
            return torch.stack([t.detach() for t in tensors], axis).to(device, dtype).contiguous()

        weights = torch.zeros(layers, len(nets), width, padded, device=device, dtype=dtype)
        weights[..., :columns] = put([net.weights for net in nets], 1)
        self.parameters = Parameters(
            weights, put([net.input_map for net in nets]), put([net.output_map for net in nets])
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
        # σ'(A): of ReLU it can be seen in σ(A)
        kept = self._s[:, :, :width]
        self._d = kept if self.sigma.name == "relu" else torch.empty_like(kept)
        self._g = torch.empty(layers + 1, len(nets), width, samples, device=device, dtype=dtype)
        self._stepped = torch.empty_like(weights)
        self._pointwise = pointwise(self.sigma, device)

    def __len__(self) -> int:
        return len(self.depths)

    def set_steps(self, steps: Tensor) -> None:
        """Set ρ, `[layers, S]`."""
        self.steps.copy_(steps[..., None, None])
        torch.sub(1, self.steps * self.depths, out=self.leaks)

    @torch.no_grad()
    def residuals(self) -> Tensor:
        """Compute W_out A_L − Y, `[S, outputs, samples]`; the pass keeps σ(A_0) … σ(A_{L−1})."""
        weights, input_map, output_map = self.parameters
        torch.mul(weights, self.steps, out=self._stepped)
        a = torch.bmm(input_map, self.x, out=self._a)
        for leak, weight, s, d in zip(self.leaks, self._stepped, self._s, self._d, strict=True):
            self._pointwise.activate(a, s[:, : self.width], d, leak)
            a.baddbmm_(weight, s)
        return torch.baddbmm(self.y, output_map, a, beta=-1)

    @torch.no_grad()
    def differentiate(self) -> Tensor:
        """Fill `gradients` with those of the loss, and return the residuals.

        With G_l = ∂C/∂A_l: G_{l−1} = (1 − ρ_l L̃) G_l + ρ_l σ'(A_{l−1}) ⊙ (V_lᵀ G_l), and
        ∂/∂W_l = ρ_l (G_l σ(A_{l−1})ᵀ + μ W_l), the products of all layers at once.
        """
        residuals = self.residuals()
        out = residuals * (2 / residuals[0].numel())
        weights, input_map, output_map = self.parameters
        torch.bmm(output_map.mT, out, out=self._g[-1])
        for layer in range(self.layers, 0, -1):
            g, t = self._g[layer], self._g[layer - 1]
            torch.bmm(self._stepped[layer - 1][..., : self.width].mT, g, out=t)
            self._pointwise.backward(t, self._d[layer - 1], g, self.leaks[layer - 1])
        both = self.gradients.weights.flatten(0, 1)
        torch.bmm(self._g[1:].flatten(0, 1), self._s.flatten(0, 1).mT, out=both)
        self.gradients.weights.addcmul_(weights, self.decays).mul_(self.steps)
        if self.learned_maps:
            torch.bmm(self._g[0], self.x.mT, out=self.gradients.input_map).addcmul_(input_map, self.decays)
            torch.bmm(out, self._a.mT, out=self.gradients.output_map).addcmul_(output_map, self.decays)
        return residuals

    @torch.no_grad()
    def losses(self, residuals: Tensor | None = None) -> Losses:
        """Compute the two parts of the loss, from a forward pass or from its residuals."""
        residuals = self.residuals() if residuals is None else residuals
        weights, input_map, output_map = self.parameters
        norms = (self.steps[..., 0] * weights.square().sum(-1)).sum((0, 2))
        if self.learned_maps:
            norms = norms + input_map.square().sum((1, 2)) + output_map.square().sum((1, 2))
        return Losses(residuals.square().mean((1, 2)), self.decays[:, 0, 0] / 2 * norms)

    @torch.no_grad()
    def criticality(self) -> Tensor:
        """Compute `crit`, the median over layers of ‖W_l − L̃ B_l σ(A_{l−1})ᵀ‖ / ‖W_l‖, for each network.

        It is ‖∂loss/∂W_l‖ / (μ ρ_l ‖W_l‖), so it takes a backward pass.
        """
        self.differentiate()
        slopes = torch.linalg.vector_norm(self.gradients.weights, dim=(-2, -1))
        sizes = torch.linalg.vector_norm(self.parameters.weights, dim=(-2, -1))
        return median(slopes / (self.decays * self.steps)[..., 0, 0] / sizes)

    @torch.no_grad()
    def moves(self) -> Tensor:
        """Compute ‖A_l − A_{l−1}‖ / ‖A_l‖ in every layer, `[layers, S]`."""
        weights, input_map, _ = self.parameters
        before, found = input_map @ self.x, []
        for step, depth_step, weight, s in zip(self.steps, 1 - self.leaks, weights, self._s, strict=True):
            s[:, : self.width] = self.sigma.function(before)
            change = step * (weight @ s) - depth_step * before
            before = before + change
            found.append(
                torch.linalg.vector_norm(change, dim=(1, 2)) / torch.linalg.vector_norm(before, dim=(1, 2))
            )
        return torch.stack(found)

    def store(self, which: Sequence[bool]) -> None:
        """Copy the parameters back into some of the networks."""
        weights, input_map, output_map = (part.detach().to("cpu", torch.float64) for part in self.parameters)
        steps = self.steps[..., 0, 0].to("cpu", torch.float64)
        with torch.no_grad():
            for number, net in enumerate(self._nets):
                if which[number]:
                    net.weights.copy_(weights[:, number, :, : self.columns])
                    net.input_map.copy_(input_map[number])
                    net.output_map.copy_(output_map[number])
                    net.steps.copy_(steps[:, number])

    def load_flat(self, points: Tensor) -> None:
        """Set the parameters from one row for each network, as `flattened` makes them."""
        weights, input_map, output_map = self.parameters
        sizes = [weights[:, 0].numel(), input_map[0].numel(), output_map[0].numel()]
        parts = points.split(sizes, 1)
        weights.copy_(parts[0].view(len(self), *weights[:, 0].shape).transpose(0, 1))
        input_map.copy_(parts[1].view_as(input_map))
        output_map.copy_(parts[2].view_as(output_map))

    def state(self) -> dict[str, Tensor]:
        """Return parameters and steps by name."""
        return {**self.trimmed(self.parameters), "steps": self.steps}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Set what `state` returned."""
        self.fill(self.parameters, tensors)
        self.set_steps(tensors["steps"][..., 0, 0].to(self.steps))

    def trimmed(self, parameters: Parameters) -> dict[str, Tensor]:
        """Return parameters by name, without padding."""
        return {**parameters._asdict(), "weights": parameters.weights[..., : self.columns]}

    def fill(self, parameters: Parameters, tensors: dict[str, Tensor]) -> None:
        """Copy what `trimmed` returned."""
        for name, part in self.trimmed(parameters).items():
            if tensors[name].shape != part.shape:
                raise ValueError(f"{name} of shape {list(tensors[name].shape)}, not {list(part.shape)}")
            part.copy_(tensors[name])


def flattened(parameters: Parameters) -> Tensor:
    """Return one row for each network."""
    return torch.cat(
        [parameters.weights.transpose(0, 1).flatten(1), *(p.flatten(1) for p in parameters[1:])], 1
    )


def compile_on_gpu(function: Function, device: torch.device) -> Function:
    """Compile a function if it runs on a GPU and Triton is installed."""
    if device.type != "cuda" or find_spec("triton") is None:
        return function
    return torch.compile(function)  # type: ignore[return-value]


def capture_cuda_graph(step: Callable[[], None]) -> Callable[[], object]:
    """Record a step as a CUDA graph: one launch instead of hundreds."""
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def pointwise(sigma: Nonlinearity, device: torch.device) -> Pointwise:
    """Make one kernel each on a GPU; on a CPU use the kernels that torch has for ReLU."""
    if sigma.name != "relu":
        backward = compile_on_gpu(lambda t, d, g, c: t.mul_(d).addcmul_(g, c), device)
        return Pointwise(
            lambda a, s, d, c: (s.copy_(sigma.function(a)), d.copy_(sigma.slope(a)), a.mul_(c)), backward
        )
    if device.type == "cpu":
        back = torch.ops.aten.threshold_backward.grad_input
        return Pointwise(
            lambda a, s, _, c: (torch.clamp_min(a, 0, out=s), a.mul_(c)),
            lambda t, d, g, c: back(t, d, 0, grad_input=t).addcmul_(g, c),
        )
    return Pointwise(
        compile_on_gpu(lambda a, s, _, c: (s.copy_(torch.relu(a)), a.mul_(c)), device),
        compile_on_gpu(lambda t, d, g, c: t.copy_((d > 0) * t + c * g), device),
    )
