"""What charts share: axes, and the way from altair to plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

PLAIN = ",.6~g"
"""A number as it is: 0.03, 1, 10,000."""
TEXT: Any = {"format": "", "formatType": "number"}
"""For a tooltip: the value as `number` of `page.js` writes it."""
WHOLE = "datum.value % 1 ? '' : format(datum.value, 'd')"
"""Labels of an axis that counts: none between whole numbers."""
PLACES = "datum.value % 1 ? '' : format(datum.value + 1, 'd')"
"""Labels of an axis of sites, from 1 as in the table; `nameSites` puts names there where they fit."""


def powers() -> alt.Axis:
    """Ticks of a logarithmic axis at 1, 3, 10, 30, …, and no lines between them."""
    import altair as alt

    ticks = [digit * 10.0**power for power in range(-12, 13) for digit in (1, 3)]
    return alt.Axis(values=ticks, format=PLAIN, labelOverlap=True)


def as_spec(chart: alt.TopLevelMixin, description: str) -> dict[str, Any]:
    """As plain values; the description is read out where the chart cannot be seen."""
    spec = chart.to_dict()
    for name in ("config", "datasets"):
        spec.pop(name, None)
    return {**spec, "description": description}
