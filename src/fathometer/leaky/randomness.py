"""One seed, several independent streams of random numbers: weights must not be drawn as the data were."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import torch

from fathometer.errors import InputError


def stream(seed: int, purpose: str) -> torch.Generator:
    """A generator for one purpose.

    Example:
        >>> a, b = (torch.rand(1, generator=stream(0, purpose)).item() for purpose in ("weights", "inputs"))
        >>> a == b
        False
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise InputError(f"seed: expected a whole number from 0 to 2⁶³ − 1, got {seed!r}")
    state = np.random.SeedSequence([seed, crc32(purpose.encode())]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0]))
