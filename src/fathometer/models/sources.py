"""Helpers that the sources of networks share: imports of optional libraries, and their errors."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from typing import Any, TypeAlias

import torch
from torch import nn

from fathometer.data import Inputs
from fathometer.errors import InputError, did_you_mean, first_line, import_extra

SourceResult: TypeAlias = tuple[nn.Module, str, Inputs]
"""The network, the name of its weights, and what it takes in."""

_kept_alive: list[torch.library.Library] = []  # a library that is collected takes its operators along


def ready(module: nn.Module) -> nn.Module:
    """Return the network on the CPU and in eval mode."""
    try:
        return module.cpu().eval()
    except NotImplementedError:  # from torch.export, which fixed the mode
        return module


def ensure_torchvision_operators() -> None:
    """Make `import torchvision` work where a CPU build of torch meets a CUDA build of torchvision.

    There torchvision's compiled operators do not load, and the import fails with "operator torchvision::nms
    does not exist". Nothing that fathometer measures calls them, so declaring their schemas is enough.
    """
    if "torchvision" in sys.modules or importlib.util.find_spec("torchvision") is None:
        return
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
        for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
            del sys.modules[name]  # what the failed import left behind
        operators = torch.library.Library("torchvision", "DEF")
        _kept_alive.append(operators)
        for name in ("nms", "qnms"):
            if not hasattr(torch.ops.torchvision, name):
                operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        importlib.import_module("torchvision")


def import_optional(package: str, *submodules: str, extra: str, purpose: str) -> Any:
    """Import a package and some of its submodules; without it, raise an error that names the extra."""
    ensure_torchvision_operators()
    return import_extra(package, *submodules, extra=extra, purpose=purpose)


def unknown_model_error(source: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for a name that a source does not have."""
    similar = did_you_mean(f"{source}:{name}", (f"{source}:{each}" for each in known), cutoff=0.8)
    return InputError(f"{source}:{name}: unknown model; {similar or '`fathometer models` lists all'}")


def download_error(name: str, error: Exception) -> InputError:
    """Return the error for weights that could not be downloaded."""
    return InputError(
        f"{name}: weights could not be downloaded ({first_line(error)}); give weights none, or a local file"
    )
