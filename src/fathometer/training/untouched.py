"""What a probe must leave as it was: random numbers, buffers, and the weights that autocast keeps."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn


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


@contextmanager
def generators_kept(loader: Any) -> Iterator[None]:
    """A loader that is looked into deals its samples afterwards as if it had not been."""
    owners = [loader, *(getattr(loader, name, None) for name in ("sampler", "batch_sampler"))]
    owners.append(getattr(owners[-1], "sampler", None))
    found = {getattr(owner, "generator", None) for owner in owners if owner is not None}
    states = [(one, one.get_state()) for one in found if isinstance(one, torch.Generator)]
    try:
        yield
    finally:
        for one, state in states:
            one.set_state(state)


@contextmanager
def buffers_kept(model: nn.Module) -> Iterator[None]:
    """Buffers that a forward pass changes, also in eval mode, are as they were."""
    before = [
        (module._buffers, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    try:
        yield
    finally:
        for buffers, name, buffer, copy in before:
            if not torch.equal(buffer, copy):
                with torch.no_grad():
                    buffer.copy_(copy)
            if name in buffers and buffers[name] is not buffer:
                buffers[name] = buffer
