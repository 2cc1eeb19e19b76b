"""Whether weights look as if they had never been trained: independent draws of one distribution.

Training gives the rows and columns of a weight matrix different sizes, its entries long tails, and its
spectrum large values that no random matrix has.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

_MAX_ENTRIES = 2**20  # of one matrix that are looked at
_MIN_ENTRIES = 1024  # with fewer, a trained matrix may look random by chance
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
    columns = ["name", "module", "kind", "finite", "rows", "columns", "spectrum", "tails", "gain"]
    return pd.DataFrame(rows, columns=columns)


def randomness(matrix: Tensor) -> dict[str, float]:
    """Return how a matrix differs from independent draws of a uniform or normal distribution.

    `rows` and `columns`: by how many standard deviations the variance of their mean squares differs from what
    it is for independent entries. `spectrum`: the largest singular value, by that of a large random matrix,
    s(√m + √n); `tails`: by how many standard deviations the kurtosis exceeds that of a normal distribution.
    `gain` is s√n, by which random weights multiply the size of independent inputs.
    """
    step = -(-matrix.numel() // _MAX_ENTRIES)
    some = matrix[::step].double()
    if some.numel() < _MIN_ENTRIES or min(some.shape) < 16:
        return {}
    squared = some.square()
    size = squared.mean()
    spread = squared.square().mean() / size.square() - 1
    if not bool(size > 0) or float(spread) < 1e-6:  # zeros, or one value with both signs
        return {}
    m, n = some.shape

    def unevenness(axis: int, count: int) -> float:
        means = squared.mean(axis)
        ratio = float(means.var() / (size.square() * spread / count))
        return (ratio - 1) / math.sqrt(2 / (len(means) - 1))

    vector = torch.linspace(-1, 1, n, dtype=some.dtype, device=some.device).sin()
    for _ in range(_ITERATIONS):
        vector = some.mT @ (some @ (vector / vector.norm()))
    top = vector.norm().sqrt()
    edge = size.sqrt() * (math.sqrt(m) + math.sqrt(n))
    tails = (float(spread) - 2) / math.sqrt(24 / some.numel())
    ends = {"spectrum": float(top / edge), "tails": tails, "gain": float(size.sqrt()) * math.sqrt(n)}
    return {"rows": unevenness(1, n), "columns": unevenness(0, m), **ends}


@torch.no_grad()
def norm_table(network: nn.Module) -> pd.DataFrame:
    """Return a row for each BatchNorm: its mode, and whether its running statistics are the defaults."""
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
