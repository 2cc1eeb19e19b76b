"""Capture: what happens at the activations of a network while it runs."""

from fathometer.capture.pairs import Pair
from fathometer.capture.reduction import Pooling, Reduction
from fathometer.capture.sites import OPERATORS, Site, SiteFilter
from fathometer.capture.unwrap import unwrapped
from fathometer.capture.watch import Watch, Widths, watch

__all__ = [
    "OPERATORS",
    "Pair",
    "Pooling",
    "Reduction",
    "Site",
    "SiteFilter",
    "Watch",
    "Widths",
    "unwrapped",
    "watch",
]
