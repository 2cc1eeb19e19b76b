"""Train a classifier of small images: one cycle of the learning rate, crops and flips.

The order of the images, their crops, flips and mixtures are drawn on the CPU, the same for every device;
dropout draws from torch's own generator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from fathometer.errors import InputError
from fathometer.progress import ProgressCallback
from fathometer.threads import torch_threads
from papers.images.pictures import Pictures, normalised

Method: TypeAlias = Literal["sgd", "adam", "mixup", "no_augmentation", "label_smoothing", "no_decay"]
"""Ways of training one architecture; all but `adam` are SGD with one thing changed."""

METHODS: tuple[Method, ...] = get_args(Method)
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


def train(
    network: nn.Module,
    data: Pictures,
    config: TrainingConfig,
    seed: int,
    device: str = "cpu",
    progress: ProgressCallback | None = None,
) -> nn.Module:
    """Train a network in place, and return it in eval mode.

    Images that do not fill a batch at the end of an epoch are left out. On a GPU it is in bfloat16 autocast.
    """
    network = network.to(device, memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    images, labels = data.normalised().to(device), data.labels.to(device)
    draws, batches = np.random.default_rng(seed), max(len(images) // config.batch, 1)
    total = config.epochs * batches
    optimiser = _optimiser(network, config)
    cycle = OneCycleLR(optimiser, config.learning_rate, total, pct_start=0.2, cycle_momentum=False)
    with torch_threads(1):  # small products are not worth sharing
        for epoch in range(config.epochs):
            order = torch.from_numpy(draws.permutation(len(images))).to(device)
            for number, chosen in enumerate(order.split(config.batch)[:batches]):
                x = images[chosen]
                if config.augment:
                    x = _augmented_at_random(x, draws, config.flips)
                optimiser.zero_grad()
                _loss(network, x, labels[chosen], config, draws).backward()
                optimiser.step()
                cycle.step()
                if progress is not None:
                    progress(epoch * batches + number + 1, total)
    return network.to(memory_format=torch.contiguous_format).eval()  # type: ignore[call-overload]


def _loss(
    network: nn.Module, x: Tensor, y: Tensor, config: TrainingConfig, draws: np.random.Generator
) -> Tensor:
    share = draws.beta(config.mixing, config.mixing) if config.mixing else 1.0
    partners = torch.from_numpy(draws.permutation(len(x))).to(x.device)
    mixed = share * x + (1 - share) * x[partners] if config.mixing else x
    with torch.autocast("cuda", torch.bfloat16, enabled=x.is_cuda):
        found = network(mixed.contiguous(memory_format=torch.channels_last))
    one, other = (
        F.cross_entropy(found.float(), of, label_smoothing=config.smoothing) for of in (y, y[partners])
    )
    return share * one + (1 - share) * other if config.mixing else one


def _optimiser(network: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    if config.method == "adam":
        return torch.optim.AdamW(network.parameters(), weight_decay=config.decay)
    return torch.optim.SGD(
        network.parameters(), lr=0.1, momentum=0.9, weight_decay=config.decay, nesterov=True, fused=True
    )


def _augmented_at_random(images: Tensor, draws: np.random.Generator, flips: bool) -> Tensor:
    shifts = torch.from_numpy(draws.integers(0, 2 * PAD + 1, (len(images), 2))).to(images.device)
    mirrored = torch.from_numpy(draws.random(len(images)) < 0.5).to(images.device)
    return augmented(images, shifts, mirrored if flips else None)


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


@torch.no_grad()
def accuracy(network: nn.Module, data: Pictures, device: str = "cpu") -> float:
    """Compute the accuracy in per cent."""
    network.eval()
    right = 0
    for pixels, labels in zip(data.pixels.split(500), data.labels.split(500), strict=True):
        found = network(normalised(pixels.to(device))).argmax(1)
        right += int((found == labels.to(device)).sum())
    return 100 * right / len(data.labels)
