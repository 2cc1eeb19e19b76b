"""Hash tensors where they are: weights and data on a GPU need not leave it.

Every block of 64-bit words w gives Σ wᵢ cᵢ mod 2⁶⁴ with fixed coefficients c; the SHA-256 of these sums, and
of what the tensors are, is the hash. It is the same on every device.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fathometer.results.provenance import names_and_parts

_BLOCK = 2**23  # bytes


def checksum(tensors: Iterable[Tensor]) -> str:
    """Return a hash of the dtypes, shapes and contents of dense tensors."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(_sums(_bytes_of(tensor.detach()).split(_BLOCK)))
    return digest.hexdigest()


def weights_checksum(state: Mapping[str, Any]) -> str:
    """Return a hash of the names, dtypes, shapes and contents of all parameters and buffers.

    Their contents are joined, so that many small tensors take little more time than a large one.
    """
    head, parts = names_and_parts(state)
    blocks = (block for joined in _joined(map(_bytes_of, parts)) for block in joined.split(_BLOCK))
    return hashlib.sha256(head + _sums(blocks)).hexdigest()


def _bytes_of(tensor: Tensor) -> Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _joined(contents: Iterable[Tensor]) -> Iterator[Tensor]:
    """Yield all bytes one after the other, in tensors of whole blocks but for the last, on one device.

    Each is written over the one before: an allocator may keep the memory of every one of them.
    """
    pending: list[Tensor] = []
    memory: Tensor | None = None
    filled = 0
    for content in contents:
        if pending and content.device != pending[0].device:
            content = content.to(pending[0].device)
        size = _BLOCK if content.device.type == "cpu" else 8 * _BLOCK
        while filled + content.numel() >= size:
            rest = size - filled
            memory = torch.cat([*pending, content[:rest]], out=memory)
            yield memory
            pending, filled, content = [], 0, content[rest:]
        pending.append(content)
        filled += content.numel()
    if filled:
        yield torch.cat(pending, out=None if memory is None else memory[:filled])


def _sums(blocks: Iterable[Tensor]) -> bytes:
    """Return the sums of all blocks, the first of which is the largest."""
    sums: list[Tensor] = []
    coefficients = torch.empty(0)
    for block in blocks:
        if not sums:
            coefficients = _coefficients(block.numel() // 8 + 1, block.device)
        if block.numel() % 8:
            block = nn.functional.pad(block, (0, -block.numel() % 8))
        elif block.storage_offset() % 8:
            block = block.clone()
        words = block.view(torch.int64)
        some = coefficients[: words.numel()]
        # A CPU need not store the products; for a GPU, torch has no such function of whole numbers.
        sums.append(torch.dot(words, some) if words.device.type == "cpu" else (words * some).sum())
    return torch.stack(sums).cpu().numpy().tobytes() if sums else b""


def _coefficients(count: int, device: torch.device) -> Tensor:
    """Return odd numbers that look random, the same on every device."""
    numbers = torch.arange(1, count + 1, device=device).mul_(0x1E3779B97F4A7C15)
    numbers.bitwise_xor_(numbers >> 29).mul_(0x3F58476D1CE4E5B9)
    return numbers.bitwise_xor_(numbers >> 32).bitwise_or_(1)
