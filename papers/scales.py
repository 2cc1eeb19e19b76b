"""How large a reproduction is."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Scale: TypeAlias = Literal["smoke", "small", "paper"]
"""`smoke`: seconds, does it run; it decides nothing. `small`: minutes on two cores, no download. `paper`: the
published setting, on data that the user names, preferably with a GPU."""

SCALES: tuple[Scale, ...] = get_args(Scale)


def time_in_words(seconds: float) -> str:
    """Write a time in words.

    Example:
        >>> time_in_words(0.2), time_in_words(150), time_in_words(9000)
        ('1 s', '2.5 min', '2.5 h')
    """
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
