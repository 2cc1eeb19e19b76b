"""Training a classifier of small images: one cycle, crops and flips; on a GPU as one CUDA graph.

All that is drawn at random comes from a generator on the CPU, so that the order of the images and their crops
are the same on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from fathometer.errors import InputError
from fathometer.progress import Show
from fathometer.reproduce.images.pictures import Pictures, normalised

Method: TypeAlias = Literal["sgd", "adam", "mixup", "no_augmentation", "label_smoothing", "no_decay"]
"""Ways of training one architecture; all but `adam` are SGD with one thing changed."""

METHODS: tuple[Method, ...] = get_args(Method)
WARM_UP = 3  # steps before the graph is captured, as CUDA libraries allocate at first
PAD = 4


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes:
        epochs: passes over the data.
        batch: images in a step.
        learning_rate: the highest of the cycle.
        decay: of the weights.
        method: which way.
        smoothing: of the labels.
        mixing: α of Beta(α, α), by which images and labels are mixed; 0 for none.
        augment: random crops and flips; flips only where `flips`.
        flips: whether a mirrored image keeps its label, as a digit does not.
    """

    epochs: int = 30
    batch: int = 256
    learning_rate: float = 0.4
    decay: float = 5e-4
    method: Method = "sgd"
    smoothing: float = 0.0
    mixing: float = 0.0
    augment: bool = True
    flips: bool = True

    def by(self, method: Method) -> Recipe:
        """The same with one thing changed.

        Example:
            >>> Recipe().by("label_smoothing").smoothing
            0.1
        """
        changes: dict[Method, Recipe] = {
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
    """What is random in an epoch: `[steps, batch]` each, on the device, drawn anew in place."""

    def __init__(self, images: int, recipe: Recipe, seed: int, device: torch.device) -> None:
        self.steps = max(images // recipe.batch, 1)
        self._images, self._recipe = images, recipe
        self._generator = torch.Generator().manual_seed(seed)
        size = (self.steps, min(recipe.batch, images))
        self.order, self.partners = (torch.zeros(size, dtype=torch.long, device=device) for _ in range(2))
        self.shifts = torch.zeros(*size, 2, dtype=torch.long, device=device)
        self.flips = torch.zeros(size, dtype=torch.bool, device=device)
        self.shares = torch.ones(self.steps, device=device)

    def draw(self) -> None:
        """For the next epoch."""
        generator, size = self._generator, self.order.shape
        order = torch.randperm(self._images, generator=generator)[: size.numel()]
        self.order.copy_(order.reshape(size))
        self.shifts.copy_(torch.randint(0, 2 * PAD + 1, (*size, 2), generator=generator))
        self.flips.copy_(torch.rand(size, generator=generator) < 0.5)
        self.partners.copy_(torch.rand(size, generator=generator).argsort(1))
        if self._recipe.mixing:
            pair = torch._standard_gamma(
                torch.full((2, self.steps), self._recipe.mixing), generator=generator
            )
            self.shares.copy_(pair[0] / pair.sum(0))  # Beta(α, α)


def train(
    network: nn.Module,
    data: Pictures,
    recipe: Recipe,
    seed: int,
    device: str = "cpu",
    progress: Show | None = None,
) -> nn.Module:
    """Train in place, on the device; the network ends in eval mode.

    On a GPU in bfloat16 autocast. The last images of an epoch that do not fill a batch wait for another.
    """
    where = torch.device(device)
    network.to(where).train()
    _lay_out(network, torch.channels_last)
    step, draws = _step(network, data, recipe, seed, where)
    take = step
    done, total = 0, recipe.epochs * draws.steps
    with _few_threads(where):
        for _ in range(recipe.epochs):
            draws.draw()
            for _ in range(draws.steps):
                if where.type == "cuda" and done == WARM_UP:
                    take = _captured(step)
                take()
                done += 1
            if progress is not None:
                progress(done, total)
    _lay_out(network, torch.contiguous_format)
    return network.eval()


def _lay_out(network: nn.Module, order: torch.memory_format) -> None:
    """Convolutions are fastest with channels last."""
    for parameter in network.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=order)


@contextmanager
def _few_threads(device: torch.device) -> Iterator[None]:
    """One: on a CPU these layers are too small to share."""
    before = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@torch.no_grad()
def accuracy(network: nn.Module, data: Pictures, device: str = "cpu") -> float:
    """In per cent."""
    network.eval()
    right = 0
    for pixels, labels in zip(data.pixels.split(500), data.labels.split(500), strict=True):
        found = network(normalised(pixels.to(device))).argmax(1)
        right += int((found == labels.to(device)).sum())
    return 100 * right / len(data.labels)


def _step(
    network: nn.Module, data: Pictures, recipe: Recipe, seed: int, device: torch.device
) -> tuple[Callable[[], None], Draws]:
    """One step of training: every choice is read from tensors by a counter, so that it can be a graph."""
    images, labels = data.normalised().to(device), data.labels.to(device)
    draws = Draws(len(images), recipe, seed, device)
    rates = _rates(recipe, recipe.epochs * draws.steps).to(device)
    rate = rates[0].clone()
    optimiser = _optimiser(network, recipe, rate)
    counter = torch.zeros((), dtype=torch.long, device=device)
    loss_of = nn.CrossEntropyLoss(label_smoothing=recipe.smoothing)

    def step() -> None:
        row = counter % draws.steps
        rate.copy_(rates[counter])
        x, y = images[draws.order[row]], labels[draws.order[row]]
        if recipe.augment:
            x = augmented(x, draws.shifts[row], draws.flips[row] if recipe.flips else None)
        share, partners = draws.shares[row], draws.partners[row]
        if recipe.mixing:
            x = share * x + (1 - share) * x[partners]
        x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.bfloat16, enabled=device.type == "cuda", cache_enabled=False):
            found = network(x)
        loss = loss_of(found.float(), y)
        if recipe.mixing:
            loss = share * loss + (1 - share) * loss_of(found.float(), y[partners])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        counter.add_(1)

    return step, draws


def augmented(images: Tensor, shifts: Tensor, flips: Tensor | None) -> Tensor:
    """Crops of the images padded by 4 at `shifts` (`[n, 2]`, 0 to 8, 4 is the middle), some mirrored.

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


def _rates(recipe: Recipe, steps: int, warm: float = 0.2) -> Tensor:
    """One cycle: a cosine up from 1/25 over the first fifth, and one down to nearly nothing."""
    place = torch.arange(steps, dtype=torch.float64) / max(steps - 1, 1)
    up = 0.04 + 0.96 * (1 - torch.cos(torch.pi * (place / warm).clamp(max=1))) / 2
    down = (1 + torch.cos(torch.pi * ((place - warm) / (1 - warm)).clamp(min=0))) / 2
    return (recipe.learning_rate * up * down.clamp(min=1e-6)).float()


def _optimiser(network: nn.Module, recipe: Recipe, rate: Tensor) -> torch.optim.Optimizer:
    parameters = list(network.parameters())
    if recipe.method == "adam":
        return torch.optim.AdamW(
            parameters, lr=rate, weight_decay=recipe.decay, capturable=rate.is_cuda, foreach=True
        )
    return torch.optim.SGD(
        parameters, lr=rate, momentum=0.9, weight_decay=recipe.decay, nesterov=True, fused=True
    )


def _captured(step: Callable[[], None]) -> Callable[[], None]:
    """The step as a CUDA graph: one launch in place of a thousand."""
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay
