"""A transformer in the terminal: a row for each layer, a column for each kind of site."""

from __future__ import annotations

import pandas as pd
from rich.console import Group
from rich.text import Text

from fathometer.cli.tables import TableView, remarks, title_of
from fathometer.results.sounding import Sounding

_PARTS = ("attention", "mlp", "block")
_COLUMNS = ("affinity", *(f"{part}{residual}" for part in _PARTS for residual in ("", " +residual")))
_MAX_GAP = 0.1  # up to which R² is shown without that of the trimmed samples


def layers_view(sounding: Sounding) -> Group | None:
    """Show the affinity score of activations and R² of parts, by layer; nothing if there are no parts.

    Several activations of a layer, such as those of experts, are one number, their mean.
    """
    if "r2_heldout" not in sounding.gauges or not any(site.kind in _PARTS for site in sounding.sites):
        return None
    found: dict[tuple[int, str], list[str]] = {}
    for site in sounding.sites:
        column = "affinity" if site.kind == "activation" else f"{site.kind}{' +residual' * site.residual}"
        if site.layer is not None and column in _COLUMNS:
            found.setdefault((site.layer, column), []).append(site.name)
    if any(len(names) > 1 for (_, column), names in found.items() if column != "affinity"):
        return None  # several stacks of layers, as an encoder with a decoder has
    plain, trimmed, affinity = (
        sounding.mean(gauge) if gauge in sounding.gauges else pd.Series(dtype=float)
        for gauge in ("r2_heldout", "r2_trimmed", "affinity")
    )
    cells: dict[str, dict[int, object]] = {column: {} for column in _COLUMNS}
    for (layer, column), names in found.items():
        if column == "affinity":
            cells[column][layer] = float(affinity.reindex(names).mean())
            continue
        r2, robust = float(plain[names[0]]), float(trimmed.get(names[0], plain[names[0]]))
        cells[column][layer] = f"{r2:.2f} → {robust:.2f}" if abs(r2 - robust) > _MAX_GAP else r2
    frame = pd.DataFrame({column: rows for column, rows in cells.items() if rows}).sort_index()
    caption = (
        "affinity of the activations; r2_heldout of the parts, alone and with the residual sum"
        f"{' (→ r2_trimmed where a few tokens decide)' if len(trimmed) else ''}; "
        "`fathometer show FILE --gauge NAME` shows a gauge at every site"
    )
    view = TableView(frame.rename_axis("layer"), title_of(sounding), caption)
    return Group(view, *map(Text, remarks(sounding)))
