"""Soundings of deep neural networks: how non-linear, how many dimensions, how fast, at every depth."""

from fathometer.activations import (
    ActivationAtlas,
    AtlasSettings,
    activation_atlas,
    polynomial_scores,
    range_scores,
)
from fathometer.capture import Pair, Reduction, Site, Watch, watch
from fathometer.errors import (
    FathometerError,
    ForwardError,
    InputError,
    MissingExtraError,
    NumericalError,
    OutOfMemoryError,
)
from fathometer.gauges import (
    AffinityScore,
    AffinityScores,
    affinity,
    affinity_score,
    affinity_scores,
    cka,
    cost_of_identity,
    entropy,
    nonnegativity,
    norm,
    r2,
    r2_heldout,
    sparsity,
    stable_rank,
)
from fathometer.history import History
from fathometer.history_file import load as load_history
from fathometer.measure import measure
from fathometer.penalty import AffinityPenalty
from fathometer.provenance import Provenance
from fathometer.report.page import write_report
from fathometer.residual import residual_path
from fathometer.sounding import Sounding
from fathometer.sounding_file import load
from fathometer.survey.atlas import atlas
from fathometer.transport import Ridge

__version__ = "0.1.0"

__all__ = [
    "ActivationAtlas",
    "AffinityPenalty",
    "AffinityScore",
    "AffinityScores",
    "AtlasSettings",
    "FathometerError",
    "ForwardError",
    "History",
    "InputError",
    "MissingExtraError",
    "NumericalError",
    "OutOfMemoryError",
    "Pair",
    "Provenance",
    "Reduction",
    "Ridge",
    "Site",
    "Sounding",
    "Watch",
    "__version__",
    "activation_atlas",
    "affinity",
    "affinity_score",
    "affinity_scores",
    "atlas",
    "cka",
    "cost_of_identity",
    "entropy",
    "load",
    "load_history",
    "measure",
    "nonnegativity",
    "norm",
    "polynomial_scores",
    "r2",
    "r2_heldout",
    "range_scores",
    "residual_path",
    "sparsity",
    "stable_rank",
    "watch",
    "write_report",
]
