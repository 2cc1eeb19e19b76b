"""Soundings of deep neural networks: how non-linear, how many dimensions, how fast, at every depth."""

from fathometer.activations import (
    ActivationAtlas,
    AtlasSettings,
    activation_atlas,
    polynomial_scores,
    range_scores,
)
from fathometer.errors import FathometerError, InputError, MissingExtraError, NumericalError
from fathometer.gauges import (
    AffinityScore,
    AffinityScores,
    affinity,
    affinity_score,
    affinity_scores,
    r2,
    r2_heldout,
)
from fathometer.transport import Ridge

__version__ = "0.1.0"

__all__ = [
    "ActivationAtlas",
    "AffinityScore",
    "AffinityScores",
    "AtlasSettings",
    "FathometerError",
    "InputError",
    "MissingExtraError",
    "NumericalError",
    "Ridge",
    "__version__",
    "activation_atlas",
    "affinity",
    "affinity_score",
    "affinity_scores",
    "polynomial_scores",
    "r2",
    "r2_heldout",
    "range_scores",
]
