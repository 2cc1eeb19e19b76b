"""What the outputs of every module are like in one forward pass: finite, how large, as BatchNorm expects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from fathometer.capture.axes import tensors_in
from fathometer.capture.hiding import hidden
from fathometer.capture.sites import module_paths

_Norm = nn.modules.batchnorm._BatchNorm
_MAX_SAMPLES = 16  # images that are compared with the statistics of a BatchNorm
_MAX_ENTRIES = 2**16  # of an output, of which the median is taken


@contextmanager
def recording_first_pass(network: nn.Module) -> Iterator[list[dict[str, Any]]]:
    """Fill a list with a row for each module call in the first pass of the network.

    Rows come in the order in which modules return, so that the first one that is not finite is the origin.
    """
    rows: list[dict[str, Any]] = []
    state = {"is_over": False}
    paths = module_paths(network)

    def after(module: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
        if state["is_over"] or module not in paths:
            return
        with hidden(gradients=False):
            found = next(tensors_in(output), None)
            if found is not None and found.is_floating_point() and found.numel():
                row = {"module": paths[module], "kind": type(module).__name__, **_sizes(found)}
                row["has_tokens"] = found.ndim == 3
                if isinstance(module, _Norm) and module.running_mean is not None:
                    row |= drift(module, arguments[0])
                rows.append(row)
        state["is_over"] = module is network

    with ExitStack() as stack:
        for module in paths:
            stack.callback(module.register_forward_hook(after).remove)
        yield rows


def _sizes(output: Tensor) -> dict[str, Any]:
    """Return whether an output is finite, the largest |entry|, and their median."""
    low, high = torch.aminmax(output)
    largest = float(torch.maximum(high, -low))
    some = output.flatten()[:: -(-output.numel() // _MAX_ENTRIES)].abs().float()
    return {
        "finite": bool(torch.isfinite(low) & torch.isfinite(high)),
        "largest": largest,
        "median": float(some.median()),
        "dtype": str(output.dtype).removeprefix("torch."),
    }


def drift(module: nn.Module, given: Tensor) -> dict[str, float]:
    """Compare the inputs of a BatchNorm with its running statistics.

    `mean_drift` is the median over channels of |mean − running mean| / s with the running deviation s,
    `variance_drift` that of |log(variance / running variance)|.
    """
    if given.ndim > 2:
        given = given[:_MAX_SAMPLES]  # with their positions, these are enough
    others = [axis for axis in range(given.ndim) if axis != 1]
    if given.numel() // given.shape[1] < 2:
        return {}
    variance, mean = torch.var_mean(given.float(), dim=others)
    eps = float(module.eps)  # type: ignore[arg-type]
    running = module.running_var.float() + eps  # type: ignore[operator]
    shift = (mean - module.running_mean.float()).abs() / running.sqrt()  # type: ignore[operator, union-attr]
    change = ((variance + eps) / running).log().abs()
    return {"mean_drift": float(shift.median()), "variance_drift": float(change.median())}
