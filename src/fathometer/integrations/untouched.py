"""What a probe must leave as it was: random numbers, and the weights that autocast keeps."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import torch


@contextmanager
def random_numbers_kept(device: torch.device) -> Iterator[None]:
    """Whatever is drawn in here, the generators of torch, NumPy and Python go on as if nothing had been."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    other = device.type not in ("cpu", "meta")
    with torch.random.fork_rng([device] if other else [], device_type=device.type if other else "cuda"):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002


@contextmanager
def autocast_cache_kept(device: torch.device) -> Iterator[None]:
    """Weights that are cast without gradients are not kept for a training pass in the same autocast region.

    autocast remembers each weight in low precision until its region ends. One that was cast under `no_grad`
    has no way back to the weight: the training pass would find it, and the weight would learn nothing.
    """
    with ExitStack() as stack:
        if torch.is_autocast_enabled(device.type):
            dtype = torch.get_autocast_dtype(device.type)
            stack.enter_context(torch.autocast(device.type, dtype, cache_enabled=False))
        yield
