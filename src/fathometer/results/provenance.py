"""How a result came about: the network and its weights, the data, the settings, the machine, the time."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from typing import Any

import torch
from torch import Tensor, nn

from fathometer.errors import InputError

_PIECE = 2**26  # bytes
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
    digest = hashlib.sha256()
    for name, tensor in state.items():
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
    for content in _contents(state.values()):
        digest.update(content)
    return digest.hexdigest()


def tensor_hash(tensor: Tensor) -> str:
    """SHA-256 of dtype, shape and bytes."""
    return weights_hash({"": tensor})


def _contents(tensors: Iterable[Tensor]) -> Iterator[memoryview]:
    """The bytes of all tensors; from a GPU in few large pieces, so that the interpreter stays free."""
    pending: list[Tensor] = []
    for tensor in tensors:
        flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        if pending and (
            flat.device != pending[0].device or sum(p.numel() for p in pending) + flat.numel() > _PIECE
        ):
            yield _bytes(pending)
            pending = []
        pending.append(flat)
        if not flat.is_cuda:
            yield _bytes(pending)
            pending = []
    if pending:
        yield _bytes(pending)


def _bytes(parts: Sequence[Tensor]) -> memoryview:
    if not parts[0].is_cuda:
        return parts[0].numpy().data
    # On a stream of its own, so as not to wait for the network, which may be at work.
    with torch.cuda.stream(torch.cuda.Stream(parts[0].device)):
        return torch.cat(list(parts)).cpu().numpy().data


def frozen_state(model: nn.Module) -> dict[str, Tensor]:
    """Parameters, and copies of the buffers, which a forward pass may change."""
    buffers = {name for name, _ in model.named_buffers(remove_duplicate=False)}
    return {
        name: value.to("cpu", copy=True) if name in buffers else value
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
    return dict(_installed())


@cache
def _installed() -> dict[str, str]:
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
    return datetime.now(UTC).isoformat(timespec="seconds")
