"""Soundings of trained networks that come with the package, to compare one's own with."""

from fathometer.reference.atlas import load, std, table
from fathometer.reference.packing import pack, unpack
from fathometer.reference.placing import Placement, place

__all__ = ["Placement", "load", "pack", "place", "std", "table", "unpack"]
