"""What every source of networks offers, and helpers that they share."""

from __future__ import annotations

import importlib
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit
from urllib.request import getproxies

from torch import nn

from fathometer.data.inputs import Inputs
from fathometer.errors import InputError, MissingExtraError, did_you_mean, first_line
from fathometer.models.torchvision_operators import ensure_torchvision_operators

FROM_A_FILE = "from a file"

Found: TypeAlias = tuple[nn.Module, str, Inputs]
"""The network, the name of its weights, and what it takes in."""


class Source(NamedTuple):
    """A library or a kind of file that networks come from.

    Attributes:
        load: makes a network from its name and `default`, `none`, `FROM_A_FILE` (weights are loaded
            afterwards) or a name of weights.
        names: lists the networks; raises `MissingExtraError` if the library is not installed.
        names_weights: whether weights have names.
        inputs_of_file: returns the inputs that a file of weights expects, from the names of the network and
            of the file, if they depend on the file.
    """

    load: Callable[[str, str], Found]
    names: Callable[[], list[str]] = list
    names_weights: bool = False
    inputs_of_file: Callable[[str, str], Inputs] | None = None


def ready(module: nn.Module) -> nn.Module:
    """Return the network on the CPU and in eval mode."""
    try:
        return module.cpu().eval()
    except NotImplementedError:  # from torch.export, which fixed the mode
        return module


def import_optional(package: str, *submodules: str, extra: str, purpose: str) -> Any:
    """Import a package and some of its submodules; without it, raise an error that names the extra."""
    ensure_torchvision_operators()
    try:
        found = importlib.import_module(package)
        for submodule in submodules:
            importlib.import_module(f"{package}.{submodule}")
    except ImportError as error:
        raise MissingExtraError(package, extra, purpose) from error
    return found


def unknown_model(source: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for a name that a source does not have."""
    similar = did_you_mean(f"{source}:{name}", (f"{source}:{each}" for each in known), cutoff=0.8)
    return InputError(f"{source}:{name}: unknown model; {similar or '`fathometer models` lists all'}")


def no_weights(name: str, error: Exception) -> InputError:
    """Return the error for weights that could not be downloaded."""
    return InputError(
        f"{name}: weights could not be downloaded ({first_line(error)}); use weights='none' or a local file"
    )


@contextmanager
def hub_or_cache() -> Iterator[None]:
    """Use only what the Hugging Face hub has left in the cache if there is no network.

    Otherwise the hub would try again for half a minute.
    """
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or not _is_reachable(constants.ENDPOINT)
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _is_reachable(address: str) -> bool:
    if getproxies():
        return True  # the proxy resolves names
    try:
        socket.getaddrinfo(urlsplit(address).hostname, 443)
    except OSError:
        return False
    return True
