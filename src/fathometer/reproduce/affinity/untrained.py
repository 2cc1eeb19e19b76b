"""A network of the paper that torchvision makes for other inputs than its default weights take."""

from __future__ import annotations

from torch import nn

from fathometer.inputs import Inputs
from fathometer.models.torchvision_operators import ensure_torchvision_operators


def vit_h_14() -> tuple[nn.Module, Inputs]:
    """ViT-H/14 with random weights: 224 pixels, where the default weights take 518 and six times the work."""
    ensure_torchvision_operators()
    from torchvision.models import vit_h_14 as build

    return build(weights=None), Inputs("image", (3, 224, 224))
