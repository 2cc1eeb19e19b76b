"""Transformer layers of torch that may run as one kernel, whose activation nobody sees."""

from __future__ import annotations

import torch
from torch import nn

_FUSED = (nn.TransformerEncoder.forward, nn.TransformerEncoderLayer.forward)


def is_fused(module: nn.Module) -> bool:
    """Whether its activation may be hidden in one kernel; not in a subclass with another `forward`."""
    return type(module).forward in _FUSED


def may_take_one_kernel(module: nn.Module) -> bool:
    """Whether the layer may leave its usual way for one kernel now, whose result differs by rounding."""
    learns = torch.is_grad_enabled() and any(parameter.requires_grad for parameter in module.parameters())
    return not module.training and not learns
