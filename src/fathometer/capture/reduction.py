"""From the tensor at a site to `[samples, features]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args
from zlib import crc32

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fathometer.errors import InputError

Pooling: TypeAlias = Literal["mean", "sum", "flatten", "position", "tokens", "authors"]


@dataclass(frozen=True)
class Reduction:
    """How a tensor with positions (pixels, tokens) becomes a matrix.

    Attributes:
        pooling: `mean` or `sum` over positions; `flatten`: every position of every channel is a feature;
            `position`: one position of each sample, drawn at random; `tokens`: every position is a sample;
            `authors`: as the paper's released code, the mean over all axes but the first two, whatever they
            mean. Where an attention mask is given, only the positions that it admits count, but for
            `flatten` and `authors`.
        pool_first: σ(r(X)) as in Definition 3.1, in place of r(σ(X)) as the released code has it.
        channel_axis: where the channels are; found from the operators if not given.
        sample_axis: where the samples are.
        seed: of the random positions.
    """

    pooling: Pooling = "mean"
    pool_first: bool = False
    channel_axis: int | None = None
    sample_axis: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.pooling not in get_args(Pooling):
            raise InputError(
                f"reduction: expected one of {', '.join(get_args(Pooling))}, got {self.pooling!r}"
            )


@dataclass(frozen=True)
class Scene:
    """What a forward pass was given.

    Attributes:
        samples: how many inputs.
        first: how many came before, in earlier passes.
        mask: which tokens count, `[samples, tokens]`.
    """

    samples: int
    first: int = 0
    mask: Tensor | None = None


def reduce(
    tensor: Tensor, axis: int, reduction: Reduction, scene: Scene, site: str = "", rows: int = 1
) -> Tensor:
    """The tensor as `[samples, features]`, a copy in float32 or float64; `axis` is that of the channels.

    With `rows`, the first axis holds so many for each sample (windows, frames): they are positions. A mask
    applies to `[samples, tokens, features]`. The tensor may be overwritten, also before a backward pass.
    """
    dtype = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    if reduction.channel_axis is not None and tensor.ndim > 2:
        axis = reduction.channel_axis
    if not -tensor.ndim <= axis < tensor.ndim or not -tensor.ndim <= reduction.sample_axis < tensor.ndim:
        raise InputError(
            f"expected channels on axis {axis} and samples on axis {reduction.sample_axis}, "
            f"got shape {list(tensor.shape)}; give other axes"
        )
    axis %= tensor.ndim
    if reduction.pooling == "authors":
        return _pooled(tensor, tuple(range(2, tensor.ndim)), dtype, mean=True)
    if reduction.sample_axis % tensor.ndim:
        place = reduction.sample_axis % tensor.ndim
        tensor, axis = tensor.movedim(place, 0), axis + 1 if axis < place else axis
    if tensor.ndim == 1:
        tensor, axis = tensor[:, None], 1
    elif axis == 0:
        raise InputError(f"channels and samples on one axis of shape {list(tensor.shape)}; give another axis")
    if rows > 1 and len(tensor) == rows * scene.samples:
        tensor, axis = tensor.unflatten(0, (scene.samples, rows)), axis + 1
    mask = scene.mask
    if mask is not None and (tensor.ndim != 3 or axis != 2 or tensor.shape[:2] != mask.shape):
        mask = None
    positions = tuple(i for i in range(1, tensor.ndim) if i != axis)
    match reduction.pooling:
        case "mean" | "sum" if mask is not None:
            total = tensor.where(mask[..., None].bool(), 0).sum(1, dtype=dtype)
            return total if reduction.pooling == "sum" else total / mask.sum(1, keepdim=True).clamp(min=1)
        case "mean" | "sum":
            return _pooled(tensor, positions, dtype, mean=reduction.pooling == "mean")
        case "flatten":
            return tensor.flatten(1).to(dtype, copy=True)
    places = tensor.movedim(axis, -1).flatten(1, -2) if positions else tensor[:, None]
    if reduction.pooling == "tokens":
        chosen = places.flatten(0, 1) if mask is None else places[mask.bool()]
        return chosen.to(dtype, copy=True)
    numbers = _draws(reduction.seed, site, scene.first, len(places))
    if mask is None:
        drawn = torch.from_numpy((numbers * places.shape[1]).astype(np.int64)).to(places.device)
    else:
        drawn = _admitted(mask.bool(), torch.from_numpy(numbers).to(places.device))
    return places[torch.arange(len(places), device=places.device), drawn].to(dtype)


def _pooled(tensor: Tensor, positions: tuple[int, ...], dtype: torch.dtype, *, mean: bool) -> Tensor:
    if not positions:
        return tensor.to(dtype, copy=True)
    return tensor.mean(positions, dtype=dtype) if mean else tensor.sum(positions, dtype=dtype)


def _admitted(mask: Tensor, numbers: Tensor) -> Tensor:
    """Turn numbers in [0, 1) into positions that the mask admits; the first where it admits none."""
    rank = (numbers * mask.sum(1)).long() + 1
    return (mask.cumsum(1) >= rank[:, None]).to(torch.uint8).argmax(1)


def _draws(seed: int, site: str, first: int, count: int) -> npt.NDArray[np.float64]:
    """Numbers in [0, 1) for samples `first`, `first + 1`, …; each depends on seed, site and sample alone."""
    z = np.arange(first, first + count, dtype=np.uint64) + np.uint64(
        (seed << 32) % 2**64 ^ crc32(site.encode())
    )
    z = z * np.uint64(0x9E3779B97F4A7C15)  # splitmix64
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2.0**53
