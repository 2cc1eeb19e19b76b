"""Both papers, figure by figure: every item is a command, decided by a test stated beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from fathometer.errors import InputError, did_you_mean
from papers import affinity, joined, leaky
from papers.item import SCALES, Claim, Item, NotDecided, RunContext, Scale, Simulation
from papers.running import reproduce
from papers.verdict import Answer, Verdict, read_verdict

__all__ = [
    "ITEMS",
    "SCALES",
    "Answer",
    "Claim",
    "Item",
    "NotDecided",
    "RunContext",
    "Scale",
    "Simulation",
    "Verdict",
    "chosen_items",
    "read_verdict",
    "reproduce",
]

ITEMS: dict[str, Item] = {item.name: item for item in (*affinity.ITEMS, *leaky.ITEMS, *joined.ITEMS)}
"""All items by name, in the order of the papers."""


def chosen_items(patterns: Sequence[str]) -> list[Item]:
    """Select items by name or pattern (`leaky-*`, `all`), each once, in the order of the papers.

    Example:
        >>> [item.name for item in chosen_items(["affinity-figure-2?"])]
        ['affinity-figure-2a', 'affinity-figure-2b', 'affinity-figure-2c']
    """
    chosen = set()
    for pattern in patterns:
        found = {name for name in ITEMS if pattern == "all" or fnmatchcase(name, pattern)}
        if not found:
            hint = did_you_mean(pattern, ITEMS, cutoff=0.5)
            raise InputError(
                f"{pattern!r}: expected an item, a pattern of items, or all; "
                + (hint or "python -m papers list shows them")
            )
        chosen |= found
    return [item for name, item in ITEMS.items() if name in chosen]
