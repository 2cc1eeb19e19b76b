"""Networks side by side: distances between signatures, families, what goes together, what moves a score.

Pure functions of soundings (by name, or a list) or of arrays. Tables are `DataFrame`s.
"""

from fathometer.compare.bootstrap import Stability, stability, stability_of
from fathometer.compare.conditions import (
    criteria_spread,
    data_deviation,
    robustness,
    signature_table,
    training_change,
)
from fathometer.compare.dip import dip_statistic, dip_test
from fathometer.compare.distance import Distances, distances, signature_distances
from fathometer.compare.facts import (
    facts_of,
    known_facts,
    read_facts,
    torchvision_facts,
    unknown_networks,
)
from fathometer.compare.families import families_by_pattern, family_table
from fathometer.compare.gathering import by_name, comparable, signatures
from fathometer.compare.modes import Modes, two_modes
from fathometer.compare.predict import best_predictors, predictors
from fathometer.compare.relate import correlations
from fathometer.compare.summaries import signature_statistics, statistics
from fathometer.compare.trees import Clustering, adjusted_rand, cluster, family_agreement
from fathometer.compare.warping import dtw, dtw_matrix, dtw_path

__all__ = [
    "Clustering",
    "Distances",
    "Modes",
    "Stability",
    "adjusted_rand",
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
    "known_facts",
    "predictors",
    "read_facts",
    "robustness",
    "signature_distances",
    "signature_statistics",
    "signature_table",
    "signatures",
    "stability",
    "stability_of",
    "statistics",
    "torchvision_facts",
    "training_change",
    "two_modes",
    "unknown_networks",
]
