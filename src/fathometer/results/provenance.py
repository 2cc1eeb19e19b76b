"""How a result came about: the network and its weights, the data, the settings, the machine, the time."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from importlib import metadata
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from fathometer.errors import InputError

_PACKAGES = ("fathometer", "torch", "numpy", "scipy", "torchvision", "timm", "transformers")
_NO_IDENTITY = ("batch_size", "widths")  # the second is an option of older versions
_OUTCOMES = ("samples_measured", "samples_left_over", "skipped", "outcome")  # of the data, known afterwards


@dataclass(frozen=True)
class Provenance:
    """Everything needed to repeat a measurement, as plain values.

    Attributes:
        model: name, class, weights, number of parameters, and a checksum of all of them.
        data: what was measured on: name, number of samples, and the SHA-256 of the contents where known.
        settings: all options.
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
        """Return plain values, ready for JSON."""
        return asdict(self)

    def identity(self) -> dict[str, Any]:
        """Return everything that decides the values: network, data, and each of the settings, by name."""
        data = {name: value for name, value in self.data.items() if name not in _OUTCOMES}
        settings = {name: value for name, value in self.settings.items() if name not in _NO_IDENTITY}
        plain: dict[str, Any] = json.loads(
            json.dumps({"model": self.model, "data": data, **settings}, default=str)
        )
        return {name: value for name, value in plain.items() if value not in (None, {}, [])}

    def fingerprint(self) -> str:
        """Return the SHA-256 of the identity."""
        return hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()

    def differences(self, other: Provenance) -> list[str]:
        """Return the names of what differs between two identities: `model`, `data`, or settings."""
        return different_names(self.identity(), other.identity())


def different_names(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the keys whose values differ between two mappings, sorted."""
    return sorted(name for name in {**one, **other} if one.get(name) != other.get(name))


def weights_hash(state: Mapping[str, Any]) -> str:
    """Return the SHA-256 over names, dtypes, shapes and bytes of all tensors, in the memory of the CPU.

    `fathometer.measuring.checksums` has a faster hash for large ones, which need not leave a GPU.
    """
    head, parts = names_and_parts(state)
    digest = hashlib.sha256(head)
    for part in parts:
        digest.update(part.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def names_and_parts(state: Mapping[str, Any]) -> tuple[bytes, Iterator[Tensor]]:
    """Return names, dtypes and shapes as text, and dense tensors with all numbers.

    Of sparse and quantised tensors these are the parts; of tensors without memory (`meta`) there are none.
    """
    named = [(name, tensor) for name, value in state.items() for tensor in tensors_of(value)]
    head = "".join(f"{name} {tensor.dtype} {list(tensor.shape)}\n" for name, tensor in named)
    read = (value.read() if isinstance(value, _Offloaded) else value for value in state.values())
    return head.encode(), (
        part for value in read for tensor in tensors_of(value) for part in _dense_parts(tensor)
    )


def tensor_hash(tensor: Tensor) -> str:
    """Return the SHA-256 of dtype, shape and bytes."""
    return weights_hash({"": tensor})


def tensors_of(value: Any) -> Iterator[Tensor]:
    """Yield a tensor, or those in a tuple, as packed weights of quantised layers have them."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for entry in value:
            yield from tensors_of(entry)


def _dense_parts(tensor: Tensor) -> list[Tensor]:
    tensor = tensor.detach()
    if tensor.is_meta:
        return []
    composite: Any = tensor
    if is_traceable_wrapper_subclass(composite):  # as torchao's quantised weights
        names, _ = composite.__tensor_flatten__()
        return [part for name in names for part in _dense_parts(getattr(composite, name))]
    if tensor.is_quantized:
        if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            scales = [torch.tensor([tensor.q_scale(), float(tensor.q_zero_point())], dtype=torch.float64)]
        else:
            scales = [tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()]
        return [tensor.int_repr(), *scales]
    if tensor.layout is torch.sparse_coo:
        tensor = tensor.coalesce()
        return [tensor.indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    if tensor.layout is not torch.strided:
        return [tensor.to_dense()]
    return [tensor.resolve_conj().resolve_neg()]


def weights_identity(model: Mapping[str, Any]) -> str:
    """Return the checksum of the weights; soundings of version 0.1 have their SHA-256 instead."""
    return str(model.get("checksum") or model.get("sha256") or "")


class _Offloaded(NamedTuple):
    """A weight that accelerate keeps in main memory or on a disk until its module runs.

    Attributes:
        tensor: its dtype and shape, without memory (`meta`).
        read: returns its numbers.
    """

    tensor: Tensor
    read: Callable[[], Tensor]


def frozen_state(model: nn.Module) -> dict[str, Any]:
    """Return parameters, and copies of the buffers on a CPU, which a forward pass may change."""
    buffers = {name for name, _ in model.named_buffers(remove_duplicate=False)}
    state = {
        name: value.to("cpu", copy=True) if name in buffers and value.device.type == "cpu" else value
        for name, value in model.state_dict().items()
        if next(tensors_of(value), None) is not None
    }
    offloaded = dict(_offloaded(model))
    return {name: offloaded.get(name, value) for name, value in state.items()}


def _offloaded(model: nn.Module) -> Iterator[tuple[str, _Offloaded]]:
    """Yield the weights for which accelerate has left tensors without memory, by name."""
    for path, module in model.named_modules(remove_duplicate=False):
        hook: Any = getattr(module, "_hf_hook", None)
        for each in getattr(hook, "hooks", [hook]):
            weights: Mapping[str, Tensor] | None = getattr(each, "weights_map", None)
            if weights is None:
                continue
            options = {"recurse": each.place_submodules, "remove_duplicate": False}
            for name, tensor in (*module.named_parameters(**options), *module.named_buffers(**options)):
                if tensor.is_meta:
                    full = f"{path}.{name}" if path else name
                    yield full, _Offloaded(tensor, partial(weights.__getitem__, name))


def describe_model(model: nn.Module, name: str | None = None) -> dict[str, Any]:
    """Return name, class, size and precision of a network."""
    if any(nn.parameter.is_lazy(parameter) for parameter in model.parameters()):
        raise InputError(
            "some layers have no weights yet (lazy ones); run the network once first", parameter="model"
        )
    return {
        "name": name or type(model).__name__,
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "dtype": ", ".join(sorted({str(parameter.dtype) for parameter in model.parameters()})),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that are installed."""
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
    """Return a device with its kind: `cuda:0 (NVIDIA H200)`, `cpu (x86_64)`."""
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return f"{device} ({platform.machine()})"


def now() -> str:
    """Return the time, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
