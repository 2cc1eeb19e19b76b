"""Turn the tensor at a site into a matrix `[samples, features]`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch._C import _functorch

from fathometer.capture.axes import Facts, tensors_in
from fathometer.errors import InputError, check_choice

Pooling: TypeAlias = Literal["mean", "sum", "flatten", "position", "tokens", "authors"]


@dataclass(frozen=True)
class Reduction:
    """How a tensor with positions (pixels, tokens) becomes a matrix.

    Attributes:
        pooling: `mean` or `sum` over positions; `flatten`: every position of every channel is a feature;
            `position`: one position of each sample, drawn at random; `tokens`: every position is a sample;
            `authors`: as in the paper's released code, the mean over all axes but the first two, whatever
            they mean. Where an attention mask is given, only the positions that it admits count, except for
            `flatten` and `authors`.
        pool_first: σ(r(X)) as in Definition 3.1, instead of r(σ(X)) as in the released code.
        channel_axis: where the channels are; derived from the operators if not given.
        sample_axis: where the samples are.
        seed: seed for the random positions.
    """

    pooling: Pooling = "mean"
    pool_first: bool = False
    channel_axis: int | None = None
    sample_axis: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("reduction", self.pooling, Pooling)


@dataclass(frozen=True)
class PassInfo:
    """What a forward pass was given.

    Attributes:
        samples: how many inputs.
        first: how many came before, in earlier passes.
        mask: which tokens count, `[samples, tokens]`.
        decoder_mask: the same for the decoder of an encoder with a decoder.
        positions: how many tokens the inputs have together; more than that of images.
    """

    samples: int
    first: int = 0
    mask: Tensor | None = None
    decoder_mask: Tensor | None = None
    positions: float = math.inf

    @cached_property
    def tokens(self) -> int | None:
        """How many tokens count, where a mask leaves some out."""
        count = None if self.mask is None else int(self.mask.sum())
        return None if self.mask is None or count == self.mask.numel() else count

    @classmethod
    def of(cls, args: tuple[Any, ...], kwargs: dict[str, Any], axis: int, first: int) -> PassInfo:
        """Find the samples, on `axis` of the first tensor with axes, and the mask in what was given."""
        mask = _usable_mask(kwargs.get("attention_mask"))
        decoder_mask = _usable_mask(kwargs.get("decoder_attention_mask"))
        if decoder_mask is None and kwargs.keys().isdisjoint(_DECODER_INPUTS):
            decoder_mask = mask  # the decoder reads the same text
        tensor = next((t for t in tensors_in((args, kwargs)) if t.ndim), None)
        if tensor is None:
            return cls(0, first, mask, decoder_mask)
        if not -tensor.ndim <= axis < tensor.ndim:
            raise InputError(
                f"expected samples on axis {axis}, got an input of shape {list(tensor.shape)}; "
                "give another sample_axis"
            )
        if tensor.is_nested:
            return cls(tensor.size(0), first, mask, decoder_mask)
        is_embedded = tensor.ndim == 3 and tensor.is_floating_point()
        positions = tensor[..., 0].numel() if is_embedded else tensor.numel()
        return cls(tensor.size(axis), first, mask, decoder_mask, positions)


_DECODER_INPUTS = ("decoder_input_ids", "decoder_inputs_embeds", "labels")


def _usable_mask(mask: Any) -> Tensor | None:
    is_usable = isinstance(mask, Tensor) and mask.ndim == 2 and not mask.is_floating_point()
    return mask if is_usable else None


class Reduced(NamedTuple):
    """A matrix, and the relative spacing of the numbers that it was made from."""

    matrix: Tensor
    resolution: float


def reduce(
    tensor: Tensor,
    facts: Facts,
    reduction: Reduction,
    given: PassInfo,
    site: str,
    memory: Tensor | None = None,
) -> Reduced:
    """Return the tensor at a site as a matrix `[samples, features]`, a copy; in `memory` if a mean fits."""
    axis = facts.channel_axis(tensor.ndim)
    while _functorch.is_functorch_wrapped_tensor(tensor):  # inside `torch.func.grad`
        tensor = _functorch.get_unwrapped(tensor)
    try:
        matrix = _matrix(tensor, axis, facts.rows_per_sample, reduction, given, site, memory)
    except InputError as error:
        raise InputError(f"{site}: {error}") from error
    pooled = reduction.pooling in ("mean", "sum", "authors")
    positions = tensor.numel() / matrix.numel() if pooled and matrix.numel() else 1
    return Reduced(matrix, pooled_resolution(tensor.dtype, matrix.dtype, positions))


def reduce_relu(
    tensor: Tensor, facts: Facts, reduction: Reduction, given: PassInfo, memory: Sequence[Tensor | None]
) -> tuple[Reduced, Reduced] | None:
    """Return what `reduce` returns for a tensor and for its ReLU, from one read of it on a GPU.

    Returns None where that is not possible: then the two are reduced one after the other.
    """
    if not tensor.is_cuda or tensor.ndim < 3 or facts.rows_per_sample > 1 or given.mask is not None:
        return None
    if reduction.pooling not in ("mean", "sum") or reduction.pool_first or reduction.sample_axis:
        return None
    if reduction.channel_axis is not None or torch.is_grad_enabled():
        return None
    if _functorch.is_functorch_wrapped_tensor(tensor):
        return None
    from fathometer.capture.relu_means import relu_means  # imports Triton

    axis = facts.channel_axis(tensor.ndim)
    shape = tensor.shape[0], tensor.shape[axis]
    x, y = (
        side
        if side is not None and _fits(side, tensor, shape, torch.float32)
        else tensor.new_empty(shape, dtype=torch.float32)
        for side in memory
    )
    if not axis or not relu_means(tensor, axis, x, y, mean=reduction.pooling == "mean"):
        return None
    resolution = pooled_resolution(tensor.dtype, torch.float32, tensor.numel() / x.numel())
    return Reduced(x, resolution), Reduced(y, resolution)


@cache
def pooled_resolution(dtype: torch.dtype, kept: torch.dtype, positions: float = 1) -> float:
    """Return the relative spacing of means over `positions` numbers of a dtype, kept in another.

    Rounding errors average out, as the root of their number. Whole numbers have none.
    """
    own = torch.finfo(dtype).eps / math.sqrt(positions) if dtype.is_floating_point else 0.0
    return max(own, torch.finfo(kept).eps)


def _matrix(
    tensor: Tensor,
    axis: int,
    rows: int,
    reduction: Reduction,
    given: PassInfo,
    site: str,
    memory: Tensor | None,
) -> Tensor:
    """Return the tensor as `[samples, features]`, a copy in float32 or float64; channels are on `axis`.

    With `rows`, the first axis holds so many for each sample (windows, frames): they are positions. A mask
    applies to `[samples, tokens, features]`. The tensor may be overwritten, also before a backward pass.
    """
    dtype, axes = torch.float64 if tensor.dtype == torch.float64 else torch.float32, tensor.ndim
    if reduction.channel_axis is not None and axes > 2:
        axis = reduction.channel_axis
    if not -axes <= axis < axes or not -axes <= reduction.sample_axis < axes:
        raise InputError(
            f"expected channels on axis {axis} and samples on axis {reduction.sample_axis}, "
            f"got shape {list(tensor.shape)}; give other axes"
        )
    axis %= axes
    if reduction.pooling == "authors":
        return _pooled(tensor, tuple(range(2, axes)), dtype, memory, mean=True)
    if index := reduction.sample_axis % axes:
        tensor, axis = tensor.movedim(index, 0), axis + 1 if axis < index else axis
    if axes == 1:
        tensor, axis = tensor[:, None], 1
    elif axis == 0:
        raise InputError(f"channels and samples on one axis of shape {list(tensor.shape)}; give another axis")
    if rows > 1 and len(tensor) == rows * given.samples:
        tensor, axis = tensor.unflatten(0, (given.samples, rows)), axis + 1
    mask = given.mask
    if mask is not None and (tensor.ndim != 3 or axis != 2 or tensor.shape[:2] != mask.shape):
        mask = None
    mask = None if mask is None else mask.to(tensor.device)  # a network may be on several devices
    positions = tuple(i for i in range(1, tensor.ndim) if i != axis)
    match reduction.pooling:
        case "mean" | "sum" if mask is not None:
            total = tensor.where(mask[..., None].bool(), 0).sum(1, dtype=dtype)
            return total if reduction.pooling == "sum" else total / mask.sum(1, keepdim=True).clamp(min=1)
        case "mean" | "sum":
            return _pooled(tensor, positions, dtype, memory, mean=reduction.pooling == "mean")
        case "flatten":
            return tensor.flatten(1).to(dtype, copy=True)
    places = tensor.movedim(axis, -1).flatten(1, -2) if positions else tensor[:, None]
    if reduction.pooling == "tokens":
        chosen = places.flatten(0, 1) if mask is None else places[mask.bool()]
        return chosen.to(dtype, copy=True)
    numbers = _draws(reduction.seed, site, given.first, len(places))
    if mask is None:
        drawn = torch.from_numpy((numbers * places.shape[1]).astype(np.int64)).to(places.device)
    else:
        drawn = _positions_in_mask(mask.bool(), numbers)
    return places[torch.arange(len(places), device=places.device), drawn].to(dtype)


def _pooled(
    tensor: Tensor, positions: tuple[int, ...], dtype: torch.dtype, memory: Tensor | None, *, mean: bool
) -> Tensor:
    if not positions:
        return tensor.to(dtype, copy=True)
    if memory is not None:
        shape = tuple([length for i, length in enumerate(tensor.shape) if i not in positions])
        if not _fits(memory, tensor, shape, dtype):
            memory = None
    return (torch.mean if mean else torch.sum)(tensor, positions, dtype=dtype, out=memory)


def _fits(memory: Tensor, tensor: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> bool:
    """Tell whether a result of that shape and dtype can be written to memory, on the tensor's device."""
    return memory.shape == shape and memory.dtype == dtype and memory.device == tensor.device


def _positions_in_mask(mask: Tensor, numbers: npt.NDArray[np.float64]) -> Tensor:
    """Turn numbers in [0, 1) into positions that the mask admits; the first where it admits none."""
    rank = (numbers * mask.sum(1).cpu().numpy()).astype(np.int64) + 1
    return (mask.cumsum(1) >= torch.from_numpy(rank).to(mask.device)[:, None]).to(torch.uint8).argmax(1)


def drawn_rows(seed: int, first: int, rows: int, count: int) -> Tensor:
    """Draw so many of the rows of a pass, the same at all sites that have as many; they stay in order."""
    order = np.argsort(_draws(seed, "", first, rows), kind="stable")
    return torch.from_numpy(np.sort(order[:count]))


def _draws(seed: int, site: str, first: int, count: int) -> npt.NDArray[np.float64]:
    """Draw numbers in [0, 1) for samples `first`, `first + 1`, …, each from seed, site and sample alone."""
    z = np.arange(first, first + count, dtype=np.uint64) + np.uint64(
        (seed << 32) % 2**64 ^ crc32(site.encode())
    )
    z = z * np.uint64(0x9E3779B97F4A7C15)  # splitmix64
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2.0**53
