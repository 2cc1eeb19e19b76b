"""All items, in the order of the papers."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from fathometer.errors import InputError
from fathometer.reproduce.affinity import (
    figure_2,
    figure_3,
    figure_4,
    figure_5a,
    figure_5b,
    figure_5c,
    figure_5d,
    figure_6,
    figure_7,
    figure_8,
    figure_9,
    figure_10,
    figure_11,
    figure_12,
    figure_13,
    figure_14,
    figure_15,
    figure_16,
    table_1,
    table_2,
    table_3,
)
from fathometer.reproduce.item import Item
from fathometer.reproduce.joined import finding, path
from fathometer.reproduce.leaky import ITEMS as LEAKY

ITEMS: dict[str, Item] = {
    item.name: item
    for item in (
        *figure_2.ITEMS,
        *figure_3.ITEMS,
        *figure_4.ITEMS,
        *figure_5a.ITEMS,
        *figure_5b.ITEMS,
        *figure_5c.ITEMS,
        *figure_5d.ITEMS,
        *figure_6.ITEMS,
        *figure_7.ITEMS,
        *figure_8.ITEMS,
        *figure_9.ITEMS,
        *figure_10.ITEMS,
        *figure_11.ITEMS,
        *figure_12.ITEMS,
        *figure_13.ITEMS,
        *figure_14.ITEMS,
        *figure_15.ITEMS,
        *figure_16.ITEMS,
        *table_1.ITEMS,
        *table_2.ITEMS,
        *table_3.ITEMS,
        *LEAKY,
        *path.ITEMS,
        *finding.ITEMS,
    )
}
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
                f"{pattern!r}: expected an item, a pattern of items, or all{hint} (fathometer reproduce list)"
            )
        wanted |= found
    return [item for name, item in ITEMS.items() if name in wanted]
