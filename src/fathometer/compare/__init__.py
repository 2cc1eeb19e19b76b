"""Compare networks: distances between signatures, families, correlations, predictors, effects of conditions.

Pure functions of soundings (by name, or a list) or of arrays. Tables are `DataFrame`s.
"""

from fathometer.compare.clustering import (
    Clustering,
    Stability,
    adjusted_rand,
    cluster,
    family_agreement,
    stability,
)
from fathometer.compare.conditions import (
    criteria_spread,
    data_deviation,
    robustness,
    signatures_over,
)
from fathometer.compare.distance import (
    DEFAULT_METRIC,
    Distances,
    distances,
    known_distances,
    signature_distances,
)
from fathometer.compare.facts import (
    facts_of,
    families_by_pattern,
    family_table,
    known_facts,
    read_facts,
    unknown_networks,
)
from fathometer.compare.predict import best_predictors, correlations, predictors
from fathometer.compare.series import dtw, dtw_matrix, dtw_path
from fathometer.compare.soundings import after_sums, by_name, comparable, signatures
from fathometer.compare.summary import (
    Modes,
    dip_statistic,
    dip_test,
    signature_statistics,
    statistics,
    two_modes,
)

__all__ = [
    "DEFAULT_METRIC",
    "Clustering",
    "Distances",
    "Modes",
    "Stability",
    "adjusted_rand",
    "after_sums",
    "best_predictors",
    "by_name",
    "cluster",
    "comparable",
    "correlations",
    "criteria_spread",
    "data_deviation",
    "dip_statistic",
    "dip_test",
    "distances",
    "dtw",
    "dtw_matrix",
    "dtw_path",
    "facts_of",
    "families_by_pattern",
    "family_agreement",
    "family_table",
    "known_distances",
    "known_facts",
    "predictors",
    "read_facts",
    "robustness",
    "signature_distances",
    "signature_statistics",
    "signatures",
    "signatures_over",
    "stability",
    "statistics",
    "two_modes",
    "unknown_networks",
]
