"""Means of x and of relu(x) from one read of x, by a Triton kernel on an NVIDIA GPU.

Where that cannot be used (`fathometer.transport.kernels`), torch computes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from fathometer.transport.kernels import can_run, disable_kernels

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for a CPU
    triton = None

_TILE = 4096  # entries that a program reads at a time
_MAX_BLOCK = 1024  # positions among them
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def _kernel(function: Callable[..., Any]) -> Any:
    return function if triton is None else triton.jit(function)


def relu_means(x: Tensor, axis: int, of_x: Tensor, of_relu: Tensor, *, mean: bool) -> bool:
    """Write the means (or sums) of x and of relu(x) over positions to two matrices `[samples, channels]`.

    Samples are on the first axis of x, channels on `axis`. Returns False, with nothing done, for dtypes and
    layouts that the kernel does not know, and where kernels cannot be used.
    """
    if triton is None or not can_run(x) or x.dtype not in _DTYPES or not x.numel():
        return False
    samples, channels = x.shape[0], x.shape[axis]
    positions = x.numel() // (samples * channels)
    if x.is_contiguous() and axis == 1:
        strides = positions, 1
    elif (x.is_contiguous() and axis == x.ndim - 1) or (
        x.ndim == 4 and axis == 1 and x.is_contiguous(memory_format=torch.channels_last)
    ):
        strides = 1, channels
    else:
        return False
    block = min(triton.next_power_of_2(positions), _MAX_BLOCK if strides[1] == 1 else 32)
    group = min(triton.next_power_of_2(channels), _TILE // block)
    factor = 1 / positions if mean else 1.0
    try:
        with torch.cuda.device_of(x):
            grid = samples, triton.cdiv(channels, group)
            _sums[grid](x, of_x, of_relu, channels, positions, *strides, factor, group, block)
    except Exception as error:
        disable_kernels(error)
        return False
    return True


@_kernel
def _sums(
    x: tl.tensor,
    of_x: tl.tensor,
    of_relu: tl.tensor,
    channels: tl.tensor,
    positions: tl.tensor,
    channel_stride: tl.tensor,
    position_stride: tl.tensor,
    factor: tl.tensor,
    GROUP: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Add up some channels of one sample for each program."""
    sample = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * GROUP + tl.arange(0, GROUP)
    exists = channel < channels
    start = x + sample * channels * positions + channel[:, None] * channel_stride
    sum_x = tl.zeros([GROUP, BLOCK], tl.float32)
    sum_relu = tl.zeros([GROUP, BLOCK], tl.float32)
    for first in range(0, positions, BLOCK):
        position = first + tl.arange(0, BLOCK)[None, :]
        value = tl.load(start + position * position_stride, exists[:, None] & (position < positions), 0)
        value = value.to(tl.float32)
        sum_x += value
        sum_relu += tl.where(value < 0, 0.0, value)  # NaN stays
    place = sample * channels + channel
    tl.store(of_x + place, tl.sum(sum_x, 1) * factor, exists)
    tl.store(of_relu + place, tl.sum(sum_relu, 1) * factor, exists)
