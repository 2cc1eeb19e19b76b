"""A transformer in the terminal: a row for each layer, a column for each kind of site."""

from __future__ import annotations

import pandas as pd
from rich.console import Group
from rich.text import Text

from fathometer.cli.tables import TableView, remarks, title_of
from fathometer.report.tables import has_layers, layer_table
from fathometer.results.sounding import Sounding

_AFFINITY = "affinity of the activations"
_R2 = "{} of the parts, alone and with the residual sum"


def layers_view(sounding: Sounding) -> Group | None:
    """Show the affinity score of activations and R² of parts, by layer; nothing if there are no parts."""
    if not has_layers(sounding):
        return None
    table = layer_table(sounding)
    if "r2_trimmed" in sounding.gauges:
        activations = table[table["kind"] == "activation"]
        table = pd.concat([activations, layer_table(sounding, "r2_trimmed")])
    cells: dict[str, dict[int, float]] = {}
    for row in table.to_dict("records"):
        column = "affinity" if row["kind"] == "activation" else row["series"]
        cells.setdefault(column, {})[row["layer"]] = row["mean"]
    shown = [_R2.format(gauge) if gauge != "affinity" else _AFFINITY for gauge in table["gauge"].unique()]
    caption = "; ".join((*shown, "`fathometer show FILE --gauge NAME` shows a gauge at every site"))
    view = TableView(pd.DataFrame(cells).sort_index().rename_axis("layer"), title_of(sounding), caption)
    return Group(view, *map(Text, remarks(sounding)))
