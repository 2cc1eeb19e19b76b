"""Replace activations by straight lines: which of them does a network need?"""

from fathometer.linearizing.criteria import Criterion
from fathometer.linearizing.fold import fold
from fathometer.linearizing.linearize import linearize, site_costs
from fathometer.linearizing.maps import ChannelMap, FullMap, Kind, SlopeMap
from fathometer.linearizing.recover import recover

__all__ = [
    "ChannelMap",
    "Criterion",
    "FullMap",
    "Kind",
    "SlopeMap",
    "fold",
    "linearize",
    "recover",
    "site_costs",
]
