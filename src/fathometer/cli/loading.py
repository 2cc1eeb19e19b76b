"""A network and data by name, ready to be measured."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import torch

from fathometer.cli.device import check_device
from fathometer.data import DataSource, open_data
from fathometer.models import LoadedModel, load_model

_DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


class Subject(NamedTuple):
    """What is measured, on what, and where.

    Attributes:
        model: the network, on the CPU.
        source: its data.
        device: to measure it on.
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
    """Check the device, which is quick, before the network is loaded and the data are opened."""
    device = check_device(device)
    torch.manual_seed(seed)  # of random weights
    loaded = load_model(model, weights)
    if dtype:
        loaded.module.to(_DTYPES[dtype])
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


def slug(name: str) -> str:
    """`resnet18` for `torchvision:resnet18`, `photos` for `some/photos/`, `random` for `random:600`."""
    last = name.partition(":")[0] if name.startswith("random:") else name.rpartition(":")[2]
    stem = Path(last).name.removesuffix(Path(last).suffix if Path(last).is_file() else "")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-.") or "data"


def skipped_line(skipped: list[str]) -> str:
    """What could not be read: how many, and the first of them."""
    names = ", ".join(skipped[:3]) + (", …" if len(skipped) > 3 else "")
    return f"skipped {len(skipped)} unreadable: {names}"
