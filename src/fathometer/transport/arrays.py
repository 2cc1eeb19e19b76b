"""Convert and check samples: float64 tensors `[..., samples, features]`."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fathometer.errors import InputError

Array: TypeAlias = "npt.NDArray[np.floating] | Tensor"
"""A NumPy array or torch tensor of floats, `[samples, features]` or `[batch, samples, features]`."""

_LAYOUT = "[samples, features] or [batch, samples, features]"
_TINY = 1e-60  # products of two squares of it are still numbers in float64


def as_samples(x: Array, name: str = "x", *, minimum: int = 2, finite: bool = True) -> Tensor:
    """Return `x` as a float64 tensor, checked: real floats, two or three axes, enough samples, all finite.

    Gradients flow through the conversion. Whatever the dtype (bf16 included), the maths is done in
    float64. `finite=False` leaves the last check, which waits for the device, to the caller.
    """
    tensor = _as_tensor(x, name)
    if not tensor.is_floating_point():
        raise InputError(
            f"{name}: expected real floating-point values, got {tensor.dtype}; convert first: {name}.float()"
        )
    if tensor.ndim not in (2, 3):
        hint = f"; for a single feature pass {name}[:, None]" if tensor.ndim == 1 else ""
        raise InputError(f"{name}: expected {_LAYOUT}, got shape {list(tensor.shape)}{hint}")
    if tensor.ndim == 3 and tensor.shape[0] == 0:
        raise InputError(f"{name}: expected a non-empty batch, got shape {list(tensor.shape)}")
    if tensor.shape[-2] < minimum:
        count = "two samples, since one has no covariance" if minimum == 2 else "one sample"
        raise InputError(f"{name}: expected at least {count}; got shape {list(tensor.shape)}")
    if tensor.shape[-1] == 0:
        raise InputError(f"{name}: expected at least one feature, got shape {list(tensor.shape)}")
    if tensor.device.type == "mps":  # no float64 there
        tensor = tensor.cpu()
    tensor = tensor.to(torch.float64)
    if finite:
        check_finite(tensor, name)
    return tensor


def as_pair(x: Array, y: Array, *, finite: bool = True, unequal: bool = False) -> tuple[Tensor, Tensor]:
    """Return both sides of a function, on one device and of equal shape, unless widths may be unequal."""
    first, second = as_samples(x, "x", finite=finite), as_samples(y, "y", finite=finite)
    if unequal and first.shape[:-1] != second.shape[:-1]:
        raise InputError(
            f"expected x and y with as many samples, got shapes {list(first.shape)} and {list(second.shape)}"
        )
    if not unequal and first.shape != second.shape:
        raise InputError(
            f"expected x and y of one shape, got {list(first.shape)} and {list(second.shape)}; "
            "row i of y must be the image of row i of x, in as many features"
        )
    if isinstance(x, Tensor) and isinstance(y, Tensor) and first.device != second.device:
        raise InputError(
            f"expected x and y on one device, got {first.device} and {second.device}; "
            "move one with .to(device)"
        )
    if first.device != second.device:  # a NumPy array beside a tensor goes where the tensor is
        device = first.device if isinstance(x, Tensor) else second.device
        first, second = first.to(device), second.to(device)
    return first, second


def resolution(x: Array) -> float:
    """Return the relative spacing of numbers in the dtype of `x`."""
    if isinstance(x, Tensor):
        return torch.finfo(x.dtype).eps
    return float(np.finfo(np.asarray(x).dtype).eps)


def check_finite(tensor: Tensor, name: str) -> None:
    """Refuse NaN and inf. A finite sum has finite terms, which takes one pass and no memory."""
    if not bool(tensor.detach().sum().isfinite()) and not bool(tensor.isfinite().all()):
        bad = int((~tensor.isfinite()).sum())
        raise InputError(
            f"{name}: expected finite values, got {bad} NaN or inf of {tensor.numel()}; "
            "drop those samples, or look for the layer that overflows"
        )


def largest_entry(rows: Tensor) -> Tensor:
    """Return the largest absolute value among the centred rows of each item."""
    return torch.linalg.vector_norm(rows.detach(), torch.inf, dim=(-2, -1))


def check_spread(largest: Tensor, name: str) -> None:
    """Refuse samples whose largest centred entry is so small or large that its square leaves float64."""
    fine = has_squares(largest)
    if not bool(fine.all()):
        raise InputError(
            f"{name}: expected a spread between {_TINY:g} and {1 / _TINY:g}, "
            f"got {float(largest[~fine].flatten()[0]):g}; rescale it first"
        )


def has_squares(largest: Tensor) -> Tensor:
    """Tell whether squares of numbers up to `largest`, and products of two squares, are within float64."""
    return (largest == 0) | ((largest >= _TINY) & (largest <= 1 / _TINY))  # NaN is not


def exceeds_rounding(mean: Tensor, rows: Tensor, epsilon: float) -> Tensor:
    """Tell whether each feature of each item varies by more than the rounding of its dtype, `[..., d]`.

    A saturated Tanh alternates between 1 and the number before it: that is a constant, not a function.
    """
    spread = torch.linalg.vector_norm(rows.detach(), dim=-2)
    return spread > epsilon * rows.shape[-2] ** 0.5 * mean.detach().abs()


def _as_tensor(x: Array, name: str) -> Tensor:
    if isinstance(x, Tensor):
        if x.is_nested or x.layout != torch.strided or x.is_meta:
            kind = "nested" if x.is_nested else "meta" if x.is_meta else str(x.layout)
            raise InputError(f"{name}: expected a dense tensor with values, got a {kind} one")
        return x
    if isinstance(x, np.ma.MaskedArray):
        raise InputError(f"{name}: expected an array without mask; drop or fill the masked samples first")
    try:
        array = np.asarray(x)
    except (ValueError, TypeError, RuntimeError) as error:  # a ragged list, a list of tensors with gradients
        raise InputError(
            f"{name}: expected {_LAYOUT}, got something that is not an array ({error})"
        ) from error
    if array.dtype.kind != "f":
        raise InputError(
            f"{name}: expected a NumPy array or a torch tensor of real floating-point values, got "
            f"{type(x).__name__} of {array.dtype}; convert first, e.g. {name}.astype('float64')"
        )
    return torch.from_numpy(np.require(array, np.float64, ["C", "W"]))
