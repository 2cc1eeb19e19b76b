"""Both papers, figure by figure: every item is a command, decided by a test stated beforehand."""

from papers.catalogue import ITEMS, chosen_items
from papers.claim import Answer, Claim
from papers.context import RunContext
from papers.item import Item, Seconds
from papers.running import reproduce
from papers.scales import SCALES, Scale
from papers.verdict import Verdict, read_verdict

__all__ = [
    "ITEMS",
    "SCALES",
    "Answer",
    "Claim",
    "Item",
    "RunContext",
    "Scale",
    "Seconds",
    "Verdict",
    "chosen_items",
    "read_verdict",
    "reproduce",
]
