"""Small networks that note every forward pass, so that work done twice can be counted."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fathometer.data.inputs import Inputs
from soak.faults.marks import working

_IMAGE = Inputs("image", (3, 8, 8))


class _Noted(nn.Sequential):
    """Every forward pass is counted."""

    def forward(self, x: Tensor) -> Tensor:
        with working():
            for layer in self:
                x = layer(x)
            return x


def small() -> tuple[nn.Module, Inputs]:
    """Two sites."""
    return _Noted(nn.Conv2d(3, 5, 3), nn.ReLU(), nn.Conv2d(5, 4, 3), nn.SiLU()), _IMAGE


def other() -> tuple[nn.Module, Inputs]:
    """Two others."""
    return _Noted(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Conv2d(4, 6, 3), nn.GELU()), _IMAGE


class _Mood(nn.Module):
    """Which sites there are depends on the data, and so on the batch."""

    def forward(self, x: Tensor) -> Tensor:
        with working():
            for place, function in enumerate((torch.tanh, torch.relu, nn.functional.silu)):
                x = function(x) if float(x[0, 0, place, 0]) > 0.3 else x
            return torch.sigmoid(x)


def moody() -> tuple[nn.Module, Inputs]:
    """Up to four sites, in an order that the data decide."""
    return _Mood(), _IMAGE
