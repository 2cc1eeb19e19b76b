"""What the exceptions of others say, in the one line that our errors have for it."""

from __future__ import annotations

import torch


def first_line(error: BaseException) -> str:
    r"""What went wrong, on one line; of an empty message, what it is.

    Example:
        >>> first_line(ValueError("no such thing.\nLook elsewhere.")), first_line(KeyError())
        ('no such thing', 'KeyError')
    """
    lines = str(error).strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else type(error).__name__


def is_out_of_memory(error: BaseException) -> bool:
    """As Python, CUDA or the CPU's allocator say it."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "allocate memory" in str(error)
    )
