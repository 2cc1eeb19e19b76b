"""The network where and as it is measured; afterwards everything is as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from fathometer.errors import InputError, OutOfMemoryError, first_line, is_out_of_memory


@contextmanager
def placed(network: nn.Module, device: str | torch.device | None) -> Iterator[torch.device]:
    """Move the network to the device, and back afterwards."""
    tensors = (*network.parameters(), *network.buffers())
    here = next((tensor.device for tensor in tensors if not tensor.is_meta), torch.device("cpu"))
    try:
        there = here if device is None else torch.device(device)
        if there != here:
            network.to(there)
    except Exception as error:
        network.to(here)
        if is_out_of_memory(error):
            raise OutOfMemoryError(f"out of memory: the network does not fit on {device}; try cpu") from error
        raise InputError(f"{device} is not usable here ({first_line(error)})", parameter="device") from error
    try:
        yield there
    finally:
        if there != here:
            network.to(here)


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Set eval mode, and every flag as it was afterwards."""
    flags = {module: module.training for module in network.modules()}
    try:
        network.eval()
    except NotImplementedError:  # from torch.export, which fixed the mode; then there are no flags to set
        flags = {}
    try:
        yield
    finally:
        for module, training in flags.items():
            module.training = training
