"""All items, in the order of the papers."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from fathometer.errors import InputError
from papers import affinity, joined, leaky
from papers.item import Item

ITEMS: dict[str, Item] = {item.name: item for item in (*affinity.ITEMS, *leaky.ITEMS, *joined.ITEMS)}
"""By name."""


def chosen_items(patterns: Sequence[str]) -> list[Item]:
    """Items by name or pattern (`leaky-*`, `all`), each once, in the order of the papers.

    Example:
        >>> [item.name for item in chosen_items(["affinity-figure-2?"])]
        ['affinity-figure-2a', 'affinity-figure-2b', 'affinity-figure-2c']
    """
    wanted = set()
    for pattern in patterns:
        found = {name for name in ITEMS if pattern == "all" or fnmatchcase(name, pattern)}
        if not found:
            near = get_close_matches(pattern, ITEMS, cutoff=0.5)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise InputError(
                f"{pattern!r}: expected an item, a pattern of items, or all{hint} (python -m papers list)"
            )
        wanted |= found
    return [item for name, item in ITEMS.items() if name in wanted]
