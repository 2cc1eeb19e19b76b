"""How a result came about: the network and its weights, the data, the settings, the machine, the time."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from importlib import metadata
from typing import Any

import torch
from torch import Tensor, nn

from fathometer.errors import InputError

_PACKAGES = ("fathometer", "torch", "numpy", "scipy", "torchvision", "timm", "transformers")


@dataclass(frozen=True)
class Provenance:
    """Everything needed to take a result again, as plain values.

    Attributes:
        model: name, class, weights, number of parameters, and the SHA-256 of all of them.
        data: what was measured on.
        settings: everything that was asked for.
        versions: of Python and of the packages that took part.
        device: where the network ran.
        date: when it was finished, UTC.
        seconds: how long it took.
    """

    model: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    device: str = ""
    date: str = ""
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def weights_hash(state: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, dtypes, shapes and bytes of all parameters and buffers."""
    with ThreadPoolExecutor(4) as pool:  # hashing leaves the interpreter free
        digests = pool.map(tensor_hash, state.values())
        lines = [f"{name} {digest}\n" for name, digest in zip(state, digests, strict=True)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def tensor_hash(tensor: Tensor) -> str:
    """SHA-256 of dtype, shape and bytes."""
    # On a stream of its own, so as not to wait for the network, which may be at work.
    with torch.cuda.stream(torch.cuda.Stream(tensor.device)) if tensor.is_cuda else nullcontext():
        plain = tensor.detach().cpu().contiguous()
    digest = hashlib.sha256(f"{plain.dtype} {list(plain.shape)}\n".encode())
    digest.update(plain.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def frozen_state(model: nn.Module) -> dict[str, Tensor]:
    """Parameters, and copies of the buffers, which a forward pass may change."""
    buffers = {name for name, _ in model.named_buffers(remove_duplicate=False)}
    return {
        name: value.clone() if name in buffers else value
        for name, value in model.state_dict().items()
        if isinstance(value, Tensor)
    }


def describe_model(model: nn.Module, name: str | None = None) -> dict[str, Any]:
    """Name, class, size and precision."""
    if any(nn.parameter.is_lazy(parameter) for parameter in model.parameters()):
        raise InputError("model: some layers have no weights yet (lazy ones); run the network once first")
    return {
        "name": name or type(model).__name__,
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "dtype": ", ".join(sorted({str(parameter.dtype) for parameter in model.parameters()})),
    }


def versions() -> dict[str, str]:
    """Of Python and of the packages that are installed."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def describe_device(device: torch.device) -> str:
    """`cuda:0 (NVIDIA H200)`, `cpu (x86_64)`."""
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return f"{device} ({platform.machine()})"


def now() -> str:
    """The time, UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
