"""The charts of an atlas, as Vega-Lite: a point for each network, and those of a sounding and of two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fathometer.report.page.overlay_charts import overlay_charts
from fathometer.report.page.signature_charts import sounding_charts
from fathometer.report.page.vega import as_spec

if TYPE_CHECKING:
    import altair as alt


def atlas_charts() -> dict[str, dict[str, Any]]:
    """By name; `scatter` draws `networks`, and `{x}` and `{y}` stand for what is shown."""
    scatter = as_spec(_scatter(), "Networks by {x} and {y}, a point for each, coloured by family")
    return {"scatter": scatter, **sounding_charts(), **overlay_charts()}


def _scatter() -> alt.Chart:
    """The view puts a logarithmic scale where it wants one."""
    import altair as alt

    return (
        alt.Chart(alt.NamedData("networks"))
        .mark_point(filled=True, size=60, opacity=0.85, cursor="pointer")
        .encode(
            x=alt.X("x:Q", title="{x}", scale=alt.Scale(zero=False)),
            y=alt.Y("y:Q", title="{y}", scale=alt.Scale(zero=False)),
            color=alt.Color("hue:N", scale=None, legend=None),
            tooltip=alt.Tooltip("known:N"),
        )
        .properties(width="container", height=300)
    )
