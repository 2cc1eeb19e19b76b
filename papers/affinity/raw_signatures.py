"""Signatures as they are, kept as a table and a figure."""

from __future__ import annotations

import pandas as pd

from papers.affinity.census import Census, keep_figure, listed
from papers.affinity.network_figures import plot_raw
from papers.item import RunContext
from papers.roles import kinds_of


def keep_signatures(context: RunContext, census: Census, shown: list[str]) -> None:
    """Write the signatures with their standard deviations, as a table and a figure."""
    table = context.table("signatures", site_rows(census, shown))
    noise = table.groupby("network", sort=False)["std"].mean()
    context.note(
        "Mean standard deviation over batches: "
        + listed([f"{name} {value:.4f}" for name, value in noise.items()])
        + "."
    )
    keep_figure(context, census, plot_raw({name: census.soundings[name] for name in shown}))


def site_rows(census: Census, names: list[str]) -> pd.DataFrame:
    """Make a row for each network and site: operator, kind, score, its standard deviation over batches."""
    parts = [
        pd.DataFrame(
            {
                "network": name,
                "site": [site.name for site in sounding.sites],
                "operator": [site.operator for site in sounding.sites],
                "kind": kinds_of(sounding.sites),
                "score": sounding.signature.to_numpy(),
                "std": sounding.std("affinity").to_numpy(),
            }
        )
        for name, sounding in ((name, census.soundings[name]) for name in names)
    ]
    return pd.concat(parts, ignore_index=True)
