"""Training images, shifted and mirrored at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from papers.images.training import PAD, augmented

BATCH = 128


class Augmented:
    """Training images in another order, shifted and mirrored in another way, each time they are read."""

    def __init__(self, batches: Sequence[tuple[Tensor, Tensor]], seed: int) -> None:
        self._images, self._labels = (torch.cat(each) for each in zip(*batches, strict=True))
        self._generator = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        """Return the number of batches."""
        return -(-len(self._images) // BATCH)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(len(self._images), generator=self._generator)
        for rows in order.split(BATCH):
            shifts = torch.randint(2 * PAD + 1, (len(rows), 2), generator=self._generator)
            flips = torch.rand(len(rows), generator=self._generator) < 0.5
            yield augmented(self._images[rows], shifts, flips), self._labels[rows]
