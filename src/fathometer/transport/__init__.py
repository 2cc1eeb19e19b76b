"""Optimal transport: moments of samples, closed forms between normal laws, exact W₂."""

from fathometer.transport.assignment import Wasserstein2, wasserstein2
from fathometer.transport.gaussian import (
    AffineMap,
    affine_map,
    affine_residual_bound,
    bures_wasserstein,
    gelbrich_bound,
    normal_gap_bound,
)
from fathometer.transport.moments import DEFAULT_RIDGE, Moments, Ridge, moments

__all__ = [
    "DEFAULT_RIDGE",
    "AffineMap",
    "Moments",
    "Ridge",
    "Wasserstein2",
    "affine_map",
    "affine_residual_bound",
    "bures_wasserstein",
    "gelbrich_bound",
    "moments",
    "normal_gap_bound",
    "wasserstein2",
]
