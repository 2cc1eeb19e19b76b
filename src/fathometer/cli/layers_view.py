"""A transformer in the terminal: a row for each layer, a column for each kind of site."""

from __future__ import annotations

import pandas as pd
from rich.console import Group
from rich.text import Text

from fathometer.cli.tables import TableView, remarks, title_of
from fathometer.report.tables import has_layers, layer_table
from fathometer.results.sounding import Sounding


def layers_view(sounding: Sounding) -> Group | None:
    """Show the affinity score of activations and R² of parts, by layer; nothing if there are no parts."""
    if not has_layers(sounding):
        return None
    cells: dict[str, dict[int, object]] = {}
    for row in layer_table(sounding).to_dict("records"):
        column = "affinity" if row["kind"] == "activation" else row["series"]
        arrow = f"{row['mean']:.2f} → {row['trimmed']:.2f}"
        cells.setdefault(column, {})[row["layer"]] = row["mean"] if pd.isna(row["trimmed"]) else arrow
    caption = (
        "affinity of the activations; r2_heldout of the parts, alone and with the residual sum"
        f"{' (→ r2_trimmed where a few tokens decide)' if 'r2_trimmed' in sounding.gauges else ''}; "
        "`fathometer show FILE --gauge NAME` shows a gauge at every site"
    )
    view = TableView(pd.DataFrame(cells).sort_index().rename_axis("layer"), title_of(sounding), caption)
    return Group(view, *map(Text, remarks(sounding)))
