"""What takes both papers: the affinity score inside the bottleneck."""

from fathometer.reproduce.item import Item
from fathometer.reproduce.joined.finding import FINDING
from fathometer.reproduce.joined.path import PATH

ITEMS: tuple[Item, ...] = (PATH, FINDING)
