"""What a probe measures on, and what it must leave unchanged: random numbers, buffers, autocast's cache."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from fathometer.errors import InputError, check_device
from fathometer.measuring.batches import batches_of, pieces
from fathometer.measuring.options import MeasureOptions
from fathometer.results.provenance import weights_hash


class ProbeBatch(list[Any]):
    """Inputs of forward passes, with their description."""

    def __init__(self, items: list[Any], description: dict[str, Any]) -> None:
        super().__init__(items)
        self.description = description


def take_probe_batch(data: Any, options: MeasureOptions, device: str | torch.device) -> ProbeBatch:
    """Copy the first `batches` × `samples` of the data, or all of them, to the device.

    A tensor, a dict of tensors or a tuple `(inputs, labels)` is one batch; a list, a loader or a data set
    holds several.
    """
    device = check_device(device, "keep_on")
    whole = isinstance(data, Mapping | tuple)
    given = [data] if whole else batches_of(data, None, options.seed)
    items: list[Any] = []
    count = 0
    for piece in pieces(given, options.samples, None, tokens=options.counts_tokens):
        items.append(
            pytree.tree_map_only(Tensor, lambda tensor: tensor.detach().to(device, copy=True), piece.value)
        )
        count += piece.samples
        if piece.completes and options.batches is not None and piece.batch + 1 >= options.batches:
            break
    if count < 2:
        raise InputError(
            f"expected at least 2 samples to measure a network on, got {count}", parameter="data"
        )
    described = getattr(data, "description", None)
    facts = dict(described) if isinstance(described, Mapping) else {"name": "probe batch"}
    leaves = pytree.tree_flatten_with_path(items)[0]
    tensors = {_path_text(path): leaf for path, leaf in leaves if isinstance(leaf, Tensor)}
    return ProbeBatch(items, {**facts, "probe_inputs": count, "probe_sha256": weights_hash(tensors)})


def _path_text(path: tuple[Any, ...]) -> str:
    """Return the path of a tensor in nested data, such as `/0/input_ids`."""
    return "".join(f"/{getattr(key, 'idx', getattr(key, 'key', getattr(key, 'name', key)))}" for key in path)


@contextmanager
def restore_random_state(device: torch.device) -> Iterator[None]:
    """Let the generators of torch, NumPy and Python continue afterwards as if nothing had been drawn."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    other = device.type not in ("cpu", "meta")
    with torch.random.fork_rng([device] if other else [], device_type=device.type if other else "cuda"):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002


@contextmanager
def without_autocast_cache(device: torch.device) -> Iterator[None]:
    """Do not cache weights that are cast without gradients for a training pass in the same autocast region.

    autocast keeps each weight in low precision until its region ends. One that was cast under `no_grad` has
    no graph back to the weight: the training pass would find it, and the weight would learn nothing.
    """
    with ExitStack() as stack:
        if torch.is_autocast_enabled(device.type):
            dtype = torch.get_autocast_dtype(device.type)
            stack.enter_context(torch.autocast(device.type, dtype, cache_enabled=False))
        yield


@contextmanager
def restore_loader_state(loader: Any) -> Iterator[None]:
    """Let a loader yield its samples afterwards as if nothing had been taken from it."""
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
def restore_buffers(model: nn.Module) -> Iterator[None]:
    """Restore buffers that a forward pass changes, also in eval mode."""
    before = [
        (module._buffers, name, buffer, buffer.clone() if _is_plain(buffer) else None)
        for module in model.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    try:
        yield
    finally:
        for buffers, name, buffer, copy in before:
            if copy is not None and not torch.equal(buffer, copy):
                with torch.no_grad():
                    buffer.copy_(copy)
            if name in buffers and buffers[name] is not buffer:
                buffers[name] = buffer


def _is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor can be compared and restored: neither sparse nor without memory."""
    return tensor.layout is torch.strided and not tensor.is_meta
