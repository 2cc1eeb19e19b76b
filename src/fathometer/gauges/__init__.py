"""Functions of a pair (X, Y), the inputs and outputs of some function, that give a number."""

from fathometer.gauges.affinity import (
    AffinityScore,
    AffinityScores,
    affinity,
    affinity_score,
    affinity_scores,
)
from fathometer.gauges.collapse import neural_collapse
from fathometer.gauges.dimensions import cost_of_identity, nonnegativity, stable_rank, stable_rank_of
from fathometer.gauges.gauge import Gauge
from fathometer.gauges.geometry import anisotropy, dead, duplicates, saturated
from fathometer.gauges.linear_fits import carriers, cka, cka_debiased, r2, r2_heldout, r2_trimmed
from fathometer.gauges.neighbours import intrinsic_dimension
from fathometer.gauges.ranks import alpha, effective_rank, participation_ratio, rankme
from fathometer.gauges.reading import read_gauges
from fathometer.gauges.registry import GAUGES, choose_gauges
from fathometer.gauges.statistics import entropy, norm, scale, sparsity

__all__ = [
    "GAUGES",
    "AffinityScore",
    "AffinityScores",
    "Gauge",
    "affinity",
    "affinity_score",
    "affinity_scores",
    "alpha",
    "anisotropy",
    "carriers",
    "choose_gauges",
    "cka",
    "cka_debiased",
    "cost_of_identity",
    "dead",
    "duplicates",
    "effective_rank",
    "entropy",
    "intrinsic_dimension",
    "neural_collapse",
    "nonnegativity",
    "norm",
    "participation_ratio",
    "r2",
    "r2_heldout",
    "r2_trimmed",
    "rankme",
    "read_gauges",
    "saturated",
    "scale",
    "sparsity",
    "stable_rank",
    "stable_rank_of",
]
