"""Both papers, figure by figure: every item is a command, decided by a test stated beforehand."""

from papers.catalogue import ITEMS, chosen_items
from papers.item import SCALES, Answer, Claim, Item, RunContext, Scale, Seconds
from papers.running import reproduce
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
