"""Functions of a pair (X, Y), the inputs and outputs of some function, that give a number."""

from fathometer.gauges.affinity import (
    AffinityScore,
    AffinityScores,
    affinity,
    affinity_score,
    affinity_scores,
)
from fathometer.gauges.dimensions import cost_of_identity, nonnegativity, stable_rank, stable_rank_of
from fathometer.gauges.gauge import Gauge
from fathometer.gauges.linear_fits import cka, r2, r2_heldout
from fathometer.gauges.registry import GAUGES, choose_gauges, read_gauges
from fathometer.gauges.statistics import entropy, norm, sparsity

__all__ = [
    "GAUGES",
    "AffinityScore",
    "AffinityScores",
    "Gauge",
    "affinity",
    "affinity_score",
    "affinity_scores",
    "choose_gauges",
    "cka",
    "cost_of_identity",
    "entropy",
    "nonnegativity",
    "norm",
    "r2",
    "r2_heldout",
    "read_gauges",
    "sparsity",
    "stable_rank",
    "stable_rank_of",
]
