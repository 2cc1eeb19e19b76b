"""Train a classifier of small images: one cycle, crops and flips; on a GPU as one CUDA graph.

The order of the images, their crops and flips come from a generator on the CPU and are the same on every
device; dropout draws from torch's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from fathometer.errors import InputError
from fathometer.progress import ProgressCallback
from fathometer.threads import torch_threads
from papers.images.pictures import Pictures, normalised

Method: TypeAlias = Literal["sgd", "adam", "mixup", "no_augmentation", "label_smoothing", "no_decay"]
"""Ways of training one architecture; all but `adam` are SGD with one thing changed."""

METHODS: tuple[Method, ...] = get_args(Method)
WARM_UP = 3  # steps before the graph is captured, as CUDA libraries allocate at first
PAD = 4


@dataclass(frozen=True)
class TrainingConfig:
    """How to train."""

    epochs: int = 24  # passes over the data
    batch: int = 512  # images in a step
    learning_rate: float = 0.5  # the highest of the cycle
    decay: float = 5e-4
    method: Method = "sgd"
    smoothing: float = 0.0
    mixing: float = 0.0  # α of Beta(α, α), by which images and labels are mixed; 0 for none
    augment: bool = True  # whether to crop at random, and to flip if `flips`
    flips: bool = True  # whether a mirrored image keeps its label; a digit does not

    def by(self, method: Method) -> TrainingConfig:
        """Return the same configuration with one thing changed.

        Example:
            >>> TrainingConfig().by("label_smoothing").smoothing
            0.1
        """
        changes: dict[Method, TrainingConfig] = {
            "sgd": self,
            "adam": replace(self, learning_rate=2e-3, decay=5e-2),
            "mixup": replace(self, mixing=0.8),
            "no_augmentation": replace(self, augment=False),
            "label_smoothing": replace(self, smoothing=0.1),
            "no_decay": replace(self, decay=0.0),
        }
        if method not in changes:
            raise InputError(f"method: expected {', '.join(METHODS)}, got {method!r}")
        return replace(changes[method], method=method)


class Draws:
    """The random numbers of an epoch, `[steps, batch]` each, on the device; redrawn in place."""

    def __init__(self, images: int, config: TrainingConfig, seed: int, device: torch.device) -> None:
        self.steps = max(images // config.batch, 1)
        self._images, self._config = images, config
        self._generator = torch.Generator().manual_seed(seed)
        size = (self.steps, min(config.batch, images))
        self.order, self.partners = (torch.zeros(size, dtype=torch.long, device=device) for _ in range(2))
        self.shifts = torch.zeros(*size, 2, dtype=torch.long, device=device)
        self.flips = torch.zeros(size, dtype=torch.bool, device=device)
        self.shares = torch.ones(self.steps, device=device)

    def draw(self) -> None:
        """Draw for the next epoch."""
        generator, size = self._generator, self.order.shape
        order = torch.randperm(self._images, generator=generator)[: size.numel()]
        self.order.copy_(order.reshape(size))
        self.shifts.copy_(torch.randint(0, 2 * PAD + 1, (*size, 2), generator=generator))
        self.flips.copy_(torch.rand(size, generator=generator) < 0.5)
        self.partners.copy_(torch.rand(size, generator=generator).argsort(1))
        if self._config.mixing:
            pair = torch._standard_gamma(
                torch.full((2, self.steps), self._config.mixing), generator=generator
            )
            self.shares.copy_(pair[0] / pair.sum(0))  # Beta(α, α)


class Training:
    """A training whose next step can be taken at any time, alternating with others.

    On a GPU each has a stream of its own and its step is a CUDA graph, in bfloat16 autocast: small networks
    leave most of a GPU idle, and several side by side fill it.

    Args:
        network: the network, trained in place and moved to the device.
        data: images and labels. Those that do not fill a batch at the end of an epoch are left out.
        config: how to train.
        seed: seed for the order of the images, crops, flips and mixing.
        device: torch device.
    """

    def __init__(
        self, network: nn.Module, data: Pictures, config: TrainingConfig, seed: int, device: str = "cpu"
    ) -> None:
        where = torch.device(device)
        self.network = network.to(where).train()
        _lay_out(network, torch.channels_last)
        self._step, self._draws = _step(network, data, config, seed, where)
        self._take = self._step
        self._done, self.steps = 0, config.epochs * self._draws.steps
        self._stream = torch.cuda.Stream(where) if where.type == "cuda" else None
        if self._stream is not None:
            torch.cuda.synchronize()  # what the step reads was made on another stream
            for _ in range(min(WARM_UP, self.steps)):
                self.advance()
            self._take = _captured(self._step, self._stream)  # reads the tensors of the step, which stays

    def advance(self) -> None:
        """Take the next step, if one is left."""
        if self._done == self.steps:
            return
        with torch.cuda.stream(self._stream):
            if self._done % self._draws.steps == 0:
                self._draws.draw()
            self._take()
        self._done += 1

    def finish(self) -> nn.Module:
        """Return the network in eval mode, when all steps are taken."""
        if self._stream is not None:
            self._stream.synchronize()
        _lay_out(self.network, torch.contiguous_format)
        return self.network.eval()


def train(trainings: Sequence[Training], progress: ProgressCallback | None = None) -> None:
    """Take all steps of several trainings, in turn."""
    total = max((training.steps for training in trainings), default=0)
    with torch_threads(1):  # small products are not worth sharing
        for step in range(total):
            for training in trainings:
                training.advance()
            if progress is not None and step % 10 == 9:
                progress(step + 1, total)
    for training in trainings:
        training.finish()


def _lay_out(network: nn.Module, order: torch.memory_format) -> None:
    """Set the memory format of convolutions, which are fastest with channels last."""
    for parameter in network.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=order)


@torch.no_grad()
def accuracy(network: nn.Module, data: Pictures, device: str = "cpu") -> float:
    """Compute the accuracy in per cent."""
    network.eval()
    right = 0
    for pixels, labels in zip(data.pixels.split(500), data.labels.split(500), strict=True):
        found = network(normalised(pixels.to(device))).argmax(1)
        right += int((found == labels.to(device)).sum())
    return 100 * right / len(data.labels)


def _step(
    network: nn.Module, data: Pictures, config: TrainingConfig, seed: int, device: torch.device
) -> tuple[Callable[[], None], Draws]:
    """Make one step of training that can be a graph: random choices are read from tensors by a counter."""
    images, labels = data.normalised().to(device), data.labels.to(device)
    draws = Draws(len(images), config, seed, device)
    rates = _rates(config, config.epochs * draws.steps).to(device)
    rate = rates[0].clone()
    optimiser = _optimiser(network, config, rate)
    counter = torch.zeros(1, dtype=torch.long, device=device)
    loss_of = nn.CrossEntropyLoss(label_smoothing=config.smoothing)

    def step() -> None:
        def now(values: Tensor) -> Tensor:
            return values.index_select(0, counter % len(values))[0]  # by a tensor: a graph knows no numbers

        rate.copy_(now(rates))
        chosen = now(draws.order)
        x, y = images[chosen], labels[chosen]
        if config.augment:
            x = augmented(x, now(draws.shifts), now(draws.flips) if config.flips else None)
        share, partners = now(draws.shares), now(draws.partners)
        if config.mixing:
            x = share * x + (1 - share) * x[partners]
        x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.bfloat16, enabled=device.type == "cuda", cache_enabled=False):
            found = network(x)
        loss = loss_of(found.float(), y)
        if config.mixing:
            loss = share * loss + (1 - share) * loss_of(found.float(), y[partners])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        counter.add_(1)

    return step, draws


def augmented(images: Tensor, shifts: Tensor, flips: Tensor | None) -> Tensor:
    """Crop images, padded by 4, at `shifts` (`[n, 2]`, 0 to 8, 4 is the middle), and mirror some.

    Example:
        >>> x = torch.arange(2 * 3 * 32 * 32.0).reshape(2, 3, 32, 32)
        >>> torch.equal(augmented(x, torch.full((2, 2), 4), None), x)
        True
    """
    size = images.shape[-1]
    padded = F.pad(images, (PAD, PAD, PAD, PAD))
    along = torch.arange(size, device=images.device)
    rows, columns = shifts[:, :1] + along, shifts[:, 1:] + along
    if flips is not None:
        columns = torch.where(flips[:, None], columns.flip(1), columns)
    sample = torch.arange(len(images), device=images.device)[:, None, None, None]
    channel = torch.arange(images.shape[1], device=images.device)[None, :, None, None]
    return padded[sample, channel, rows[:, None, :, None], columns[:, None, None, :]]


def _rates(config: TrainingConfig, steps: int) -> Tensor:
    """Compute one cycle: a cosine up from 1/25 over the first fifth, and one down to nearly 0."""
    warm = 0.2
    place = torch.arange(steps, dtype=torch.float64) / max(steps - 1, 1)
    up = 0.04 + 0.96 * (1 - torch.cos(torch.pi * (place / warm).clamp(max=1))) / 2
    down = (1 + torch.cos(torch.pi * ((place - warm) / (1 - warm)).clamp(min=0))) / 2
    return (config.learning_rate * up * down.clamp(min=1e-6)).float()


def _optimiser(network: nn.Module, config: TrainingConfig, rate: Tensor) -> torch.optim.Optimizer:
    parameters = list(network.parameters())
    if config.method == "adam":
        return torch.optim.AdamW(
            parameters, lr=rate, weight_decay=config.decay, capturable=rate.is_cuda, foreach=rate.is_cuda
        )
    return torch.optim.SGD(
        parameters, lr=rate, momentum=0.9, weight_decay=config.decay, nesterov=True, fused=True
    )


def _captured(step: Callable[[], None], stream: torch.cuda.Stream) -> Callable[[], None]:
    """Record a step as a CUDA graph: one launch instead of a thousand."""
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        step()
    return graph.replay
