"""Makes `import torchvision` work where a CPU build of torch meets a CUDA build of torchvision.

There torchvision's compiled operators do not load, and the import fails with "operator torchvision::nms does
not exist". Nothing that fathometer measures calls them, so declaring their schemas is enough.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys

import torch
from torch import library

_NEEDED_AT_IMPORT = ("nms", "qnms")
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_kept_alive: list[library.Library] = []  # a library that is collected takes its operators along


def ensure_torchvision_operators() -> None:
    """Import torchvision if it is installed, and declare its operators if they are missing."""
    if "torchvision" in sys.modules or importlib.util.find_spec("torchvision") is None:
        return
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
        _forget_half_an_import()
        _declare()
        importlib.import_module("torchvision")


def _declare() -> None:
    operators = library.Library("torchvision", "DEF")
    _kept_alive.append(operators)
    for name in _NEEDED_AT_IMPORT:
        if not hasattr(torch.ops.torchvision, name):
            operators.define(name + _SCHEMA)


def _forget_half_an_import() -> None:
    """Remove the submodules that a failed import leaves behind."""
    for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
