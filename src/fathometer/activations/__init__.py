"""Activation functions by themselves: how affine they are, and on which inputs (Figures 2 and 6)."""

from fathometer.activations.atlas import ActivationAtlas, AtlasSettings, activation_atlas
from fathometer.activations.catalogue import PAPER_ACTIVATIONS, activation
from fathometer.activations.curves import polynomial_scores, range_scores

__all__ = [
    "PAPER_ACTIVATIONS",
    "ActivationAtlas",
    "AtlasSettings",
    "activation",
    "activation_atlas",
    "polynomial_scores",
    "range_scores",
]
