"""Whether weights look as if they had never been trained: independent draws of one distribution.

Training gives the rows and columns of a weight matrix different sizes, and its spectrum large values that no
random matrix has. All three ratios are about 1 for independent entries of any distribution.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

_MAX_ENTRIES = 2**20  # of one matrix that are looked at
_MIN_ENTRIES = 256
_ITERATIONS = 8  # of the power method

_Norm = nn.modules.batchnorm._BatchNorm


@torch.no_grad()
def weight_table(network: nn.Module) -> pd.DataFrame:
    """Return a row for each tensor of weights with memory: whether it is finite, and how random it looks."""
    rows: list[dict[str, Any]] = []
    for path, module in network.named_modules():
        for name, tensor in module.named_parameters(recurse=False):
            if tensor.is_meta or not tensor.numel() or not tensor.is_floating_point():
                continue
            low, high = (float(value) for value in torch.aminmax(tensor.detach()))
            row: dict[str, Any] = {
                "name": f"{path}.{name}" if path else name,
                "module": path,
                "kind": type(module).__name__,
                "finite": math.isfinite(low) and math.isfinite(high),
            }
            if name == "weight" and tensor.ndim > 1 and not isinstance(module, nn.Embedding):
                row |= randomness(tensor.detach().flatten(1)) if row["finite"] else {}
            rows.append(row)
    columns = ["name", "module", "kind", "finite", "rows", "columns", "spectrum"]
    return pd.DataFrame(rows, columns=columns)


def randomness(matrix: Tensor) -> dict[str, float]:
    """Return how uneven the rows, the columns and the spectrum are; 1 for independent entries.

    `rows` and `columns`: the variance of their mean squares, by what it is for independent entries.
    `spectrum`: the largest singular value, by that of a large random matrix, s(√m + √n).
    """
    step = -(-matrix.numel() // _MAX_ENTRIES)
    some = matrix[::step].double()
    if some.numel() < _MIN_ENTRIES or min(some.shape) < 4:
        return {}
    squared = some.square()
    size = squared.mean()
    spread = squared.square().mean() / size.square() - 1
    if not bool(size > 0) or float(spread) < 1e-6:  # zeros, or one value with both signs
        return {}
    m, n = some.shape

    def unevenness(axis: int, count: int) -> float:
        return float(squared.mean(axis).var() / (size.square() * spread / count))

    vector = torch.linspace(-1, 1, n, dtype=some.dtype, device=some.device).sin()
    for _ in range(_ITERATIONS):
        vector = some.mT @ (some @ (vector / vector.norm()))
    top = vector.norm().sqrt()
    edge = size.sqrt() * (math.sqrt(m) + math.sqrt(n))
    return {"rows": unevenness(1, n), "columns": unevenness(0, m), "spectrum": float(top / edge)}


@torch.no_grad()
def norm_table(network: nn.Module) -> pd.DataFrame:
    """Return a row for each BatchNorm with running statistics: its mode, and whether these are the defaults."""
    rows = []
    for path, module in network.named_modules():
        if not isinstance(module, _Norm) or module.running_mean is None or module.running_var is None:
            continue
        mean, variance = module.running_mean, module.running_var
        if mean.is_meta:
            continue
        # Whoever folds a BatchNorm writes 1 or 1 - eps for the variance.
        is_default = bool((mean == 0).all()) and bool(((variance - 1).abs() <= module.eps).all())
        weight, bias = module.weight, module.bias
        scales = weight is None or bool((weight == 1).all())
        shifts = bias is None or bool((bias == 0).all())
        rows.append(
            {
                "module": path,
                "training": module.training,
                "is_default": is_default,
                "is_identity": is_default and scales and not shifts,  # folded into the layer before
                "is_untouched": is_default and scales and shifts,
            }
        )
    return pd.DataFrame(rows, columns=["module", "training", "is_default", "is_identity", "is_untouched"])
