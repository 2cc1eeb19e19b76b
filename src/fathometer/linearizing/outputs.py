"""The outputs of a network as rows, and errors for what cannot be such."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fathometer.capture.axes import tensors_in
from fathometer.errors import FathometerError, ForwardError, InputError, first_line
from fathometer.measuring.batches import label_entry, run
from fathometer.measuring.scores import are_probabilities


def forward(network: nn.Module, value: Any, device: torch.device) -> Any:
    """Run a network on a batch; an error of its own is named as one.

    Raises:
        ForwardError: if the forward pass fails.
    """
    try:
        return run(network, value, device, None)
    except FathometerError:
        raise
    except Exception as error:  # whatever a forward pass may raise
        raise ForwardError(
            f"the network failed on its input ({type(error).__name__}: {first_line(error)})"
        ) from error


def rows_of(output: Any, value: Any) -> tuple[Tensor, bool]:
    """Return the outputs as rows `[n, outputs]`, and whether they are logits.

    Logits are what is called so, or a matrix, unless the labels are floating-point numbers; of probabilities,
    their logarithms. Of tokens, those count that the attention mask admits.
    """
    named = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", None)
    tensor = named if isinstance(named, Tensor) else next(tensors_in(output), None)
    if tensor is None or not tensor.is_floating_point() or not tensor.ndim:
        raise InputError(
            "expected a network that returns a tensor with a row for each input", parameter="model"
        )
    labels = label_entry(value)
    is_regression = isinstance(labels, Tensor) and labels.is_floating_point()
    are_logits = (named is not None or (tensor.ndim == 2 and not is_regression)) and tensor.shape[-1] > 1
    mask = value.get("attention_mask") if isinstance(value, Mapping) else None
    if tensor.ndim == 3 and isinstance(mask, Tensor) and mask.shape == tensor.shape[:2]:
        tensor = tensor[mask.to(tensor.device).bool()]
    if not are_logits:
        return tensor.reshape(len(tensor), -1).float(), False
    if tensor.ndim == 4:
        tensor = tensor.movedim(1, -1)
    rows = tensor.flatten(0, -2).float()
    return (rows.clamp_min(1e-30).log() if are_probabilities(rows) else rows), True


def check_finite(value: Any, parameter: str = "data") -> None:
    """Refuse inputs that are NaN or infinite."""
    for tensor in tensors_in(value):
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise InputError("some inputs are NaN or infinite; remove them", parameter=parameter)
