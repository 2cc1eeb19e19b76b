"""The inputs of a probe: taken from the data once, copied, and the same ever after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from fathometer.errors import InputError, first_line
from fathometer.measuring.batches import batches_of, pieces
from fathometer.results.provenance import weights_hash


class ProbeBatch(list[Any]):
    """Items for forward passes, and what they are."""

    def __init__(self, items: list[Any], description: dict[str, Any]) -> None:
        super().__init__(items)
        self.description = description


def hold(
    data: Any, *, samples: int, batches: int, tokens: bool, seed: int, device: str | torch.device
) -> ProbeBatch:
    """The first `batches` × `samples` of the data, or all there are, copied to the device.

    A tensor, a dict of tensors or a tuple `(inputs, labels)` is one batch; a list, a loader or a data set
    holds several.
    """
    try:
        place = torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, TypeError) as error:  # a build without CUDA asserts
        raise InputError(f"keep_on: {device} is not usable here ({first_line(error)})") from error
    one = isinstance(data, Mapping | tuple)
    items: list[Any] = []
    count = 0
    for piece in pieces([data] if one else batches_of(data, None, seed), samples, None, tokens=tokens):
        items.append(_copied(piece.value, place))
        count += piece.samples
        if piece.completes and piece.batch + 1 >= batches:
            break
    if count < 2:
        raise InputError(f"data: expected at least 2 samples to measure a network on, got {count}")
    described = getattr(data, "description", None)
    facts = dict(described) if isinstance(described, Mapping) else {"name": "probe batch"}
    return ProbeBatch(items, {**facts, "probe_inputs": count, "probe_sha256": _hash(items)})


def _hash(items: list[Any]) -> str:
    """Of all tensors, whatever they are in."""
    found: dict[str, Tensor] = {}

    def look(place: str, value: Any) -> None:
        if isinstance(value, Tensor):
            found[place] = value
        elif isinstance(value, Mapping):
            for key, entry in value.items():
                look(f"{place}/{key}", entry)
        elif isinstance(value, tuple | list):
            for number, entry in enumerate(value):
                look(f"{place}/{number}", entry)

    look("", items)
    return weights_hash(found)


def _copied(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return value.detach().to(device, copy=True)
    if isinstance(value, Mapping):
        return {key: _copied(entry, device) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        entries = [_copied(entry, device) for entry in value]
        return value._make(entries) if hasattr(value, "_make") else type(value)(entries)
    return value
