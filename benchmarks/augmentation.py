"""Training images, shifted and mirrored at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from papers.images.training import PAD, augmented


class Augmented:
    """Training images in another order, shifted and mirrored in another way, each time they are read."""

    def __init__(self, batches: Sequence[tuple[Tensor, Tensor]], seed: int, size: int) -> None:
        self._images, self._labels = (torch.cat(each) for each in zip(*batches, strict=True))
        self._generator, self._size = torch.Generator().manual_seed(seed), size

    def __len__(self) -> int:
        """Return the number of batches."""
        return -(-len(self._images) // self._size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(len(self._images), generator=self._generator)
        device = self._images.device
        for chosen in order.split(self._size):
            shifts = torch.randint(2 * PAD + 1, (len(chosen), 2), generator=self._generator)
            flips = torch.rand(len(chosen), generator=self._generator) < 0.5
            rows = chosen.to(device)
            yield augmented(self._images[rows], shifts.to(device), flips.to(device)), self._labels[rows]
