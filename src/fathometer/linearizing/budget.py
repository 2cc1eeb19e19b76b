"""How much may be replaced: a number of sites, of activation elements that stay, or of points of accuracy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from fathometer.errors import InputError, check_whole
from fathometer.linearizing.slots import Slot

_FORM = re.compile(r"(\d+\.?\d*|\.\d+)\s*(k|m)?\s*(sites?|%|elements?|points?)?", re.IGNORECASE)
_FACTORS = {None: 1, "k": 1000, "m": 1_000_000}


class Budget(NamedTuple):
    """When to stop.

    Attributes:
        unit: what is counted: `sites` that are replaced, `elements` that stay, `points` of accuracy lost.
        amount: how many.
    """

    unit: Literal["sites", "elements", "points"]
    amount: float


def parse_budget(budget: int | str | None, slots: Sequence[Slot]) -> Budget:
    """Return what a budget means for these slots; None is all of them.

    Example:
        >>> parse_budget("0.5 points", [])
        Budget(unit='points', amount=0.5)
    """
    if budget is None:
        return Budget("sites", len(slots))
    found = _FORM.fullmatch(str(budget).strip())
    if not found:
        raise InputError(
            f"expected a number of sites, such as 12 or 25%, elements that stay, such as '50k elements', or "
            f"'0.5 points' of accuracy, got {budget!r}",
            parameter="budget",
        )
    number = float(found[1]) * _FACTORS[found[2] and found[2].lower()]
    unit = (found[3] or "sites").lower()
    if unit.startswith("point"):
        return Budget("points", number)
    if unit.startswith("element"):
        if whole := next((slot.site for slot in slots if slot.site.kind == "module"), None):
            raise InputError(
                f"{whole} is a whole module; elements are counted for activations, give a number of sites",
                parameter="budget",
            )
        total = sum(slot.elements for slot in slots)
        if number >= total:
            raise InputError(
                f"expected fewer elements than the {total} of these sites, got {number:.0f}",
                parameter="budget",
            )
        return Budget("elements", number)
    if unit == "%":
        if not 0 < number <= 100:
            raise InputError(f"expected more than 0 and at most 100 %, got {number:g} %", parameter="budget")
        return Budget("sites", max(1, round(number / 100 * len(slots))))
    if number != int(number):
        raise InputError(
            f"expected a whole number of sites, got {number:g}; a share is written '25%'", parameter="budget"
        )
    count = check_whole("budget", int(number), 1)
    if count > len(slots):
        raise InputError(
            f"expected at most {len(slots)}, the number of sites, got {count}", parameter="budget"
        )
    return Budget("sites", count)
