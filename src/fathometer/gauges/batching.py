"""How many pairs are laid into batches: small enough for memory, few enough for a GPU.

A group holds pairs of one shape, `[items, n, d]` on either side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

Group: TypeAlias = tuple[Tensor, Tensor]

_CHUNK = {"cpu": 2**24, "cuda": 2**28}  # entries of the largest matrix that is held at a time
_NARROWEST = 256  # on a GPU a batch of narrower pairs takes no less time


class Batch(NamedTuple):
    """Centred pairs in coordinates that leave distances as they are."""

    x: Tensor  # [items, n, width], or fewer columns: those that follow are zero
    y: Tensor  # [items, n, width]
    dimension: Tensor  # [items], the number of features that they came with
    items: Tensor  # [items], which of all items they are


def pieces(groups: Sequence[Group]) -> Iterator[tuple[Tensor, Tensor, int]]:
    """The groups in pieces that fit in memory, each with the place of its first item among all."""
    start = 0
    for x, y in groups:
        n, d = x.shape[-2:]
        size = _at_a_time(x, max(d, min(d, 2 * n) * 2))
        for i in range(0, len(x), size):
            yield x[i : i + size], y[i : i + size], start + i
        start += len(x)


def arrange(batches: Iterable[Batch]) -> Iterator[Batch]:
    """On a GPU, batches of several widths together, the narrow ones first; else each as it comes.

    Zeros are appended to the narrower pairs: features in which neither side varies. They leave the
    moments, which know the true dimension, and the distances as they are.
    """
    alike: dict[tuple[int, int], list[Batch]] = defaultdict(list)
    for batch in batches:
        if batch.y.is_cuda:
            n, width = batch.y.shape[-2:]
            alike[max(_NARROWEST, 1 << (width - 1).bit_length()), n].append(batch)
        elif len(batch.items):
            yield batch
    for key in sorted(alike):
        whole = _together(alike[key])
        size = _at_a_time(whole.y, 2 * whole.y.shape[-1])
        for i in range(0, len(whole.items), size):
            yield Batch(*(part[i : i + size] for part in whole))


def _at_a_time(samples: Tensor, width: int) -> int:
    n = samples.shape[-2]
    entries = max(n * n, n * width, width * width // 4)
    return max(1, _CHUNK.get(samples.device.type, _CHUNK["cpu"]) // entries)


def _together(parts: Sequence[Batch]) -> Batch:
    width = max(part.y.shape[-1] for part in parts)

    def joined(samples: Sequence[Tensor]) -> Tensor:
        return torch.cat([torch.nn.functional.pad(s, (0, width - s.shape[-1])) for s in samples])

    return Batch(
        joined([part.x for part in parts]),
        joined([part.y for part in parts]),
        torch.cat([part.dimension for part in parts]),
        torch.cat([part.items for part in parts]),
    )
