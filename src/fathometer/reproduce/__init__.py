"""Both papers, figure by figure: every item is a command, decided by a test stated beforehand."""

from fathometer.reproduce.catalogue import ITEMS, chosen_items
from fathometer.reproduce.claim import Answer, Claim
from fathometer.reproduce.item import Item, Seconds
from fathometer.reproduce.running import reproduce
from fathometer.reproduce.scales import SCALES, Scale
from fathometer.reproduce.verdict import Verdict, read_verdict
from fathometer.reproduce.workshop import Workshop

__all__ = [
    "ITEMS",
    "SCALES",
    "Answer",
    "Claim",
    "Item",
    "Scale",
    "Seconds",
    "Verdict",
    "Workshop",
    "chosen_items",
    "read_verdict",
    "reproduce",
]
