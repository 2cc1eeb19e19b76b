"""A training on CIFAR-10 with enlarged images, which can stop after any epoch and be resumed."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from fathometer.errors import InputError
from papers.images.pictures import Pictures, normalised
from papers.networks.recipes import SIZE, Recipe

if TYPE_CHECKING:
    from PIL.Image import Image

PAD = 4
WARM_UP = 0.2  # share of the steps
RECALIBRATION = 100  # batches


@dataclass(frozen=True)
class Enlarged:
    """An image of CIFAR-10 as networks see it: normalised, then enlarged."""

    size: int = SIZE

    def __call__(self, image: Image) -> Tensor:
        """`[3, size, size]`."""
        pixels = torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)[None]
        return enlarged(normalised(pixels), self.size)[0]


def enlarged(images: Tensor, size: int = SIZE) -> Tensor:
    """Enlarge images, `[n, 3, 32, 32]` to `[n, 3, size, size]`."""
    return F.interpolate(images, size=(size, size), mode="bilinear", align_corners=False)


def cycle(place: float) -> float:
    """Return the share of the highest rate: a cosine up from 1/25 over the first fifth, and one down to 0.

    Example:
        >>> [round(cycle(place), 2) for place in (0, 0.1, 0.2, 0.6, 1)]
        [0.04, 0.52, 1.0, 0.5, 0.0]
    """
    if place < WARM_UP:
        return 0.04 + 0.48 * (1 - math.cos(math.pi * place / WARM_UP))
    return (1 + math.cos(math.pi * (place - WARM_UP) / (1 - WARM_UP))) / 2


class Outcome(NamedTuple):
    """Accuracy (per cent) and loss (nats) on the test images."""

    accuracy: float
    loss: float


class Trainer:
    """A training that can stop after any epoch and be resumed from its checkpoint.

    Images stay on the device as bytes; crops, flips and mixing are drawn there, one crop for a whole batch.
    On CUDA it computes in bfloat16 where autocast does.
    """

    def __init__(self, network: nn.Module, recipe: Recipe, images: Pictures, seed: int, device: str) -> None:
        self.device, self.recipe = torch.device(device), recipe
        self.network = network.to(self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._pixels, self._labels = (side.to(self.device) for side in images)
        self.images = len(self._labels)
        self.steps = max(self.images // recipe.batch, 1)
        parameters = list(network.parameters())
        self._optimiser: torch.optim.Optimizer = (
            torch.optim.AdamW(parameters, lr=recipe.rate, weight_decay=recipe.decay)
            if recipe.optimiser == "adamw"
            else torch.optim.SGD(
                parameters, lr=recipe.rate, momentum=0.9, weight_decay=recipe.decay, nesterov=True
            )
        )
        total = recipe.epochs * self.steps
        self._schedule = torch.optim.lr_scheduler.LambdaLR(self._optimiser, lambda step: cycle(step / total))
        self._generator = torch.Generator().manual_seed(seed + 1000)
        self._loss = nn.CrossEntropyLoss(label_smoothing=recipe.smoothing)
        self.epochs, self.seconds = 0, 0.0
        torch.manual_seed(seed + 2000)  # of dropout
        torch.backends.cudnn.benchmark = recipe.search

    @property
    def is_done(self) -> bool:
        """Whether all epochs are done."""
        return self.epochs == self.recipe.epochs

    def epoch(self) -> None:
        """Train one epoch."""
        started = time.monotonic()
        self.network.train()
        order = torch.randperm(self.images, generator=self._generator)
        for chosen in order[: self.steps * self.recipe.batch].chunk(self.steps):
            self._step(chosen.to(self.device))
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.epochs += 1
        self.seconds += time.monotonic() - started
        weights = list(self.network.parameters())
        if not all(bool(weight.isfinite().all()) for weight in weights):
            raise InputError(f"the weights are not finite after epoch {self.epochs}; the recipe does not fit")

    def _step(self, chosen: Tensor) -> None:
        images, labels = self._augmented(chosen), self._labels[chosen]
        share = 1.0
        if self.recipe.mixing:
            pair = torch._standard_gamma(torch.full((2,), self.recipe.mixing), generator=self._generator)
            share = float(pair[0] / pair.sum())
            images = share * images + (1 - share) * images.flip(0)
        found = self._run(images)
        loss = share * self._loss(found, labels)
        if share < 1:
            loss = loss + (1 - share) * self._loss(found, labels.flip(0))
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()
        if self.recipe.clip is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
        self._optimiser.step()
        self._schedule.step()

    def _augmented(self, chosen: Tensor) -> Tensor:
        images = F.pad(normalised(self._pixels[chosen]), (PAD, PAD, PAD, PAD))
        top, left = torch.randint(0, 2 * PAD + 1, (2,), generator=self._generator).tolist()
        images = images[:, :, top : top + 32, left : left + 32]
        flips = (torch.rand(len(chosen), generator=self._generator) < 0.5).to(self.device)
        return torch.where(flips[:, None, None, None], images.flip(3), images)

    def _run(self, images: Tensor) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            found: Tensor = self.network(enlarged(images).contiguous(memory_format=torch.channels_last))
        return found.float()

    @torch.no_grad()
    def recalibrate(self) -> None:
        """Replace the running statistics of BatchNorm by means over batches of training images."""
        norms = [layer for layer in self.network.modules() if isinstance(layer, nn.BatchNorm2d)]
        momenta = [layer.momentum for layer in norms]
        for layer in norms:
            layer.reset_running_stats()
            layer.momentum = None  # a plain mean
        self.network.train()
        order = torch.randperm(self.images, generator=self._generator)
        for chosen in order.split(self.recipe.batch)[:RECALIBRATION]:
            self._run(self._augmented(chosen.to(self.device)))
        for layer, momentum in zip(norms, momenta, strict=True):
            layer.momentum = momentum

    @torch.no_grad()
    def test(self, images: Pictures) -> Outcome:
        """Compute accuracy and loss in float32."""
        self.network.eval()
        right, loss = 0, 0.0
        for pixels, labels in zip(images.pixels.split(500), images.labels.split(500), strict=True):
            target = labels.to(self.device)
            inputs = enlarged(normalised(pixels.to(self.device)))
            found = self.network(inputs.contiguous(memory_format=torch.channels_last))
            right += int((found.argmax(1) == target).sum())
            loss += float(F.cross_entropy(found, target, reduction="sum"))
        return Outcome(100 * right / len(images.labels), loss / len(images.labels))

    def state(self) -> dict[str, Any]:
        """Return all that is needed to resume."""
        return {
            "network": self.network.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "schedule": self._schedule.state_dict(),
            "generator": self._generator.get_state(),
            "epochs": self.epochs,
            "seconds": self.seconds,
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        self.network.load_state_dict(state["network"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._schedule.load_state_dict(state["schedule"])
        self._generator.set_state(state["generator"])
        self.epochs, self.seconds = state["epochs"], state["seconds"]
