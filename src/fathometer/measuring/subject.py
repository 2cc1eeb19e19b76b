"""Opens a network and data by name."""

from __future__ import annotations

from typing import NamedTuple

import torch

from fathometer.data import DataSource, open_data
from fathometer.data.opening import require_data
from fathometer.errors import check_device
from fathometer.models import LoadedModel, load_model


class Subject(NamedTuple):
    """A network, its data, and the device to measure it on.

    Attributes:
        model: the network, on the CPU.
        source: its data.
        device: the device; `auto` is resolved.
    """

    model: LoadedModel
    source: DataSource
    device: str


def load_subject(
    model: str,
    data: str,
    *,
    weights: str,
    device: str,
    dtype: str | None,
    seed: int,
    batch_size: int,
    shuffle: bool,
    workers: int,
    strict: bool,
    length: int | None,
) -> Subject:
    """Load the network and open its data; what can be checked quickly is checked first."""
    device = check_device(device)
    require_data(data)
    loaded = load_model(model, weights, seed=seed)
    if dtype:
        loaded.module.to(getattr(torch, dtype))
    source = open_data(
        data,
        loaded.inputs,
        batch_size=batch_size,
        shuffle=shuffle,
        seed=seed,
        workers=workers,
        strict=strict,
        length=length,
    )
    return Subject(loaded, source, device)
