"""How large a reproduction is."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, get_args

Scale: TypeAlias = Literal["smoke", "small", "paper"]
"""`smoke`: seconds, does it run; it decides nothing. `small`: minutes on two cores, no download. `paper`: the
published setting, on data that the user names, preferably with a GPU."""

SCALES: tuple[Scale, ...] = get_args(Scale)


class Seconds(NamedTuple):
    """About how long an item takes at each scale."""

    smoke: float
    small: float
    paper: float

    def at(self, scale: Scale) -> float:
        """At one scale.

        Example:
            >>> Seconds(1, 60, 300).at("small")
            60
        """
        return self[SCALES.index(scale)]
