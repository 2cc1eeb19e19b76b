"""Whether kernels written in Triton can be used. Triton comes with torch for CUDA, and needs a C compiler."""

from __future__ import annotations

import warnings
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from fathometer.errors import is_out_of_memory

_MIN_CAPABILITY = (7, 0)  # of an NVIDIA GPU, for Triton
_FAILURES: list[Exception] = []  # after one, kernels are not tried again


def can_run(tensor: Tensor) -> bool:
    """Tell whether kernels can work on a tensor, as far as is known."""
    return not _FAILURES and tensor.is_cuda and _is_supported(tensor.device)


@cache
def _is_supported(device: torch.device) -> bool:
    if torch.version.hip is not None or find_spec("triton") is None:
        return False
    return torch.cuda.get_device_capability(device) >= _MIN_CAPABILITY


def disable_kernels(error: Exception) -> None:
    """Use no kernels from here on, and say why; an error for lack of memory is raised again."""
    if is_out_of_memory(error):
        raise error
    _FAILURES.append(error)
    if len(_FAILURES) == 1:
        warnings.warn(
            f"the kernels for GPUs failed ({error!r}), so torch computes without them, which is slower; "
            "Triton needs a C compiler such as gcc",
            stacklevel=2,
        )
