"""The record of a trained network: how to build it, which file has its weights, what it takes in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from fathometer.data import Inputs
from fathometer.models import LoadedModel, load_weights

if TYPE_CHECKING:
    from PIL.Image import Image

Data: TypeAlias = Literal["imagenet", "cifar10"]

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class CentreCrop:
    """The centre of an image as `(pixels * scale - mean) / std`, RGB or BGR; `short_side` comes first.

    Up to 256 pixels, images are first resized to a short side of 256, larger crops to their own size.
    """

    size: int
    mean: tuple[float, ...] = (0, 0, 0)
    std: tuple[float, ...] = (1, 1, 1)
    scale: float = 1 / 255
    bgr: bool = False
    short_side: int = 256

    def __call__(self, image: Image) -> Tensor:
        """`[3, size, size]`."""
        ratio = max(self.short_side, self.size) / min(image.size)
        if ratio != 1:
            image = image.resize((round(image.width * ratio), round(image.height * ratio)))
        left, top = (round((side - self.size) / 2) for side in image.size)  # as torchvision rounds
        crop = image.convert("RGB").crop((left, top, left + self.size, top + self.size))
        pixels = torch.from_numpy(np.array(crop)).permute(2, 0, 1).float()
        if self.bgr:
            pixels = pixels.flip(0)
        mean, std = (torch.tensor(v).reshape(3, 1, 1) for v in (self.mean, self.std))
        return (pixels * self.scale - mean) / std


@dataclass(frozen=True)
class Network:
    """A network with published weights. Calling it builds it, with random weights, and its inputs.

    Attributes:
        name: unique among the networks of its data.
        title: its name in pictures.
        family: as the papers call it.
        year: in which the architecture was published.
        build: makes the network; the names of its weights are those of the file.
        file: pattern of the file of weights.
        crop: preprocessing.
        source: where the weights come from.
        accuracy: top-1 in per cent, as published, and by whom.
        notes: what differs from the architecture or its usual weights.
        data: what it was trained on.
    """

    name: str
    title: str
    family: str
    year: int
    build: Callable[[], nn.Module]
    file: str
    crop: CentreCrop
    source: str
    accuracy: tuple[float, str] | None = None
    notes: tuple[str, ...] = ()
    data: Data = "imagenet"

    def __call__(self) -> tuple[nn.Module, Inputs]:
        """Build the network, for `fathometer measure papers.networks.imagenet:NAME --weights FILE`."""
        return self.build(), Inputs("image", (3, self.crop.size, self.crop.size), preprocess=self.crop)

    def weights_file(self, folders: Iterable[Path]) -> Path | None:
        """Find the file of weights in some folders and below."""
        return next((found for folder in folders for found in sorted(folder.rglob(self.file))), None)

    def load(self, file: Path | None) -> LoadedModel:
        """Build the network with the weights of a file, or with random ones."""
        torch.manual_seed(0)
        module, inputs = self()
        if file is not None:
            load_weights(module, file)
        return LoadedModel(module.eval(), self.name, file.name if file else "none", inputs)

    @property
    def facts(self) -> dict[str, Any]:
        """What is known of the network, for the provenance of its soundings."""
        found: dict[str, Any] = {"year": self.year, "trained_on": self.data, "source": self.source}
        if self.accuracy is not None:
            found |= {"accuracy": self.accuracy[0], "accuracy_by": self.accuracy[1]}
        return found | ({"notes": list(self.notes)} if self.notes else {})
