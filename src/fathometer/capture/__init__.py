"""See what happens at the activations of a network while it runs."""

from fathometer.capture.pairs import Pair, Watch, Widths
from fathometer.capture.parts import Residual
from fathometer.capture.reduce import Pooling, Reduction
from fathometer.capture.sites import OPERATORS, Site, SiteFilter, unwrapped
from fathometer.capture.watch import watch

__all__ = [
    "OPERATORS",
    "Pair",
    "Pooling",
    "Reduction",
    "Residual",
    "Site",
    "SiteFilter",
    "Watch",
    "Widths",
    "unwrapped",
    "watch",
]
