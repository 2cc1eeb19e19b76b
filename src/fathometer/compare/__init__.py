"""Networks side by side: distances between signatures, families, what goes together, what moves a score.

Pure functions of soundings (by name, or a list) or of arrays. Tables are `DataFrame`s.
"""

from fathometer.compare.cluster import Clustering, cluster, family_agreement
from fathometer.compare.distance import Distances, distances, signature_distances
from fathometer.compare.dtw import dtw, dtw_matrix, dtw_path
from fathometer.compare.facts import facts_of, known_facts, read_facts, torchvision_facts
from fathometer.compare.families import families_by_pattern, family_table
from fathometer.compare.gathering import by_name, comparable, signatures
from fathometer.compare.modes import Modes, two_modes
from fathometer.compare.predict import best_predictors, predictors
from fathometer.compare.relate import correlations
from fathometer.compare.robustness import (
    criteria_spread,
    data_deviation,
    robustness,
    signature_table,
    training_change,
)
from fathometer.compare.stability import Stability, stability
from fathometer.compare.statistics import signature_statistics, statistics

__all__ = [
    "Clustering",
    "Distances",
    "Modes",
    "Stability",
    "best_predictors",
    "by_name",
    "cluster",
    "comparable",
    "correlations",
    "criteria_spread",
    "data_deviation",
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
    "statistics",
    "torchvision_facts",
    "training_change",
    "two_modes",
]
