"""What takes both papers: the affinity score inside the bottleneck."""

from papers.item import Item
from papers.joined.finding import FINDING
from papers.joined.path import PATH

ITEMS: tuple[Item, ...] = (PATH, FINDING)
