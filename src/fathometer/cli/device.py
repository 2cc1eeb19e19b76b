"""A device name from the command line, checked."""

from __future__ import annotations

import torch

from fathometer.errors import InputError


def check_device(name: str) -> str:
    """`name`, if work can be done there; for `auto`, a GPU if there is one."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.ones(1, device=name).sum().item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"--device {name}: not usable here ({reason}); try cpu") from error
    return name
