"""Gauges: functions of a pair (X, Y), the inputs and outputs of some function, that give a number."""

from fathometer.gauges.affinity import (
    AffinityScore,
    AffinityScores,
    affinity,
    affinity_score,
    affinity_scores,
)
from fathometer.gauges.companions import r2, r2_heldout

__all__ = [
    "AffinityScore",
    "AffinityScores",
    "affinity",
    "affinity_score",
    "affinity_scores",
    "r2",
    "r2_heldout",
]
