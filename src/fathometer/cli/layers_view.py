"""A transformer in the terminal: a row for each layer, a column for each kind of site."""

from __future__ import annotations

import pandas as pd
from rich.console import Group
from rich.text import Text

from fathometer.cli.tables import TableView, remarks, title_of
from fathometer.results.sounding import Sounding

_PARTS = ("attention", "mlp", "block")
_FITS = ("r2_heldout", "r2_trimmed", "r2")  # what is shown of parts: the first that was measured


def layers_view(sounding: Sounding) -> Group | None:
    """Show the affinity score of activations and R² of parts, by layer; nothing if there are no parts."""
    fit = next((gauge for gauge in _FITS if gauge in sounding.gauges), None)
    if fit is None or not any(site.kind in _PARTS for site in sounding.sites):
        return None
    means = {gauge: sounding.mean(gauge) for gauge in ("affinity", fit) if gauge in sounding.gauges}
    rows = []
    for site in sounding.sites:
        gauge = "affinity" if site.kind == "activation" else fit
        if site.layer is None or gauge not in means or site.kind not in ("activation", *_PARTS):
            continue
        column = "affinity" if gauge == "affinity" else f"{site.kind}{' +residual' * site.residual}"
        rows.append({"layer": site.layer, "column": column, "value": means[gauge][site.name]})
    if pd.DataFrame(rows).query("column != 'affinity'").duplicated(["layer", "column"]).any():
        return None  # several stacks, as an encoder with a decoder has
    order = ["affinity", *(f"{part}{end}" for part in _PARTS for end in ("", " +residual"))]
    frame = pd.DataFrame(rows).pivot_table(index="layer", columns="column", values="value")
    frame = frame[[name for name in order if name in frame]].rename_axis(columns=None)
    caption = (
        f"affinity of the activations; {fit} of the parts, alone and with the residual sum; "
        "mean over batches; `fathometer show FILE --gauge NAME` shows a gauge at every site"
    )
    return Group(TableView(frame, title_of(sounding), caption), *map(Text, remarks(sounding)))
