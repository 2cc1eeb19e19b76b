"""What was published, the test that decides whether it holds, and what the test found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Claim:
    """A published claim, and how it is decided, stated before anything is measured.

    Attributes:
        words: the claim, as the paper makes it.
        test: the rule: which number, which limit, over which networks and seeds.
        ours: whether the claim is ours and not the paper's: a wider or another reading, a correction, a check
            of what is printed. It is decided and shown, but does not count towards the outcome of the item.
    """

    words: str
    test: str
    ours: bool = False


@dataclass(frozen=True)
class Answer:
    """What the test of a claim found.

    Attributes:
        holds: its result; None if it could not be applied, and `measured` says why.
        measured: what was measured, in words with numbers.
        numbers: the same for programs; NaN and infinity, which JSON does not have, are left out.
    """

    holds: bool | None
    measured: str
    numbers: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        finite = {name: float(value) for name, value in self.numbers.items() if math.isfinite(value)}
        object.__setattr__(self, "numbers", finite)
        object.__setattr__(self, "holds", None if self.holds is None else bool(self.holds))
