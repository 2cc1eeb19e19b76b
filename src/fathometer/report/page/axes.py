"""Axes that several charts share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair as alt

PLAIN = ",.6~g"
"""A number as it is: 0.03, 1, 10,000."""


def powers() -> alt.Axis:
    """Ticks of a logarithmic axis at 1, 3, 10, 30, …, and no lines between them."""
    import altair as alt

    ticks = [digit * 10.0**power for power in range(-12, 13) for digit in (1, 3)]
    return alt.Axis(values=ticks, format=PLAIN, labelOverlap=True)
