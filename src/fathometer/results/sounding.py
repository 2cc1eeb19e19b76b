"""The result of measuring one network on one data set: site × batch × gauge, with its provenance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from fathometer.capture.sites import Site
from fathometer.errors import InputError, did_you_mean
from fathometer.results.provenance import Provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEYS = ("site", "batch", "n", "d")
"""Columns of `Sounding.records` that are not gauges."""

_PLURALS = {"site": "sites", "batch": "batches", "gauge": "gauges"}


@dataclass(frozen=True, eq=False)
class Sounding:
    """The values of all gauges at every site of a network, and how they came about.

    Attributes:
        sites: the sites in order of depth.
        records: a row for each site and batch: `site` (its name), `batch`, `n` samples, `d` features, and a
            column for each value of each gauge.
        provenance: model, data, settings, versions, device, date.
    """

    sites: tuple[Site, ...]
    records: pd.DataFrame
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def gauges(self) -> list[str]:
        """The names of what was measured."""
        return [str(column) for column in self.records.columns if column not in KEYS]

    @property
    def signature(self) -> pd.Series[float]:
        """The non-linearity signature: the affinity score of every site, as a mean over batches."""
        return self.mean("affinity")

    @property
    def table(self) -> pd.DataFrame:
        """Site × gauge: mean and standard deviation over batches, and number of batches."""
        grouped = self.records.groupby("site", sort=False)[self.gauges]
        return grouped.agg(["mean", "std", "count"]).reindex([site.name for site in self.sites])

    @property
    def batches(self) -> pd.DataFrame:
        """One row for each site and batch, with both as index."""
        return self.records.set_index(["site", "batch"])

    def mean(self, gauge: str) -> pd.Series[float]:
        """Return a gauge at every site, as a mean over batches."""
        return self._by_site(gauge).mean().reindex([site.name for site in self.sites])

    def std(self, gauge: str) -> pd.Series[float]:
        """Return the standard deviation of a gauge over batches; NaN where there is only one batch."""
        return self._by_site(gauge).std().reindex([site.name for site in self.sites])

    def summary(self, gauge: str = "affinity") -> pd.Series[float]:
        """Return min, median, max and spread (max − min) of a gauge over the sites (Figure 3)."""
        values = self.mean(gauge)
        return pd.Series(
            {
                "min": values.min(),
                "median": values.median(),
                "max": values.max(),
                "spread": values.max() - values.min(),
            },
            name=gauge,
        )

    def plot(
        self,
        gauge: str = "affinity",
        *,
        columns: Literal[1, 2] = 2,
        strip: bool = False,
        distribution: bool = False,
    ) -> Figure:
        """Plot a gauge along depth, with error bars over batches; `figure.savefig("signature.pdf")` saves it.

        Args:
            gauge: the gauge to plot.
            columns: width of the figure in columns of a page, 1 or 2.
            strip: whether to draw the network below as a strip, coloured by value.
            distribution: whether to draw a histogram beside it.
        """
        from fathometer.report import plot_signature

        return plot_signature(self, gauge, columns=columns, strip=strip, distribution=distribution)

    def save(self, path: str | Path) -> Path:
        """Save one file, `.json` or `.parquet`; it appears once it is complete."""
        from fathometer.results.sounding_file import save

        return save(self, Path(path))

    def _by_site(self, gauge: str) -> Any:
        if gauge not in self.gauges:
            hint = did_you_mean(gauge, self.gauges)
            raise InputError(
                f"{gauge!r} was not measured here, but {', '.join(self.gauges)}{hint and f'; {hint}'}"
            )
        return self.records.groupby("site", sort=False)[gauge]

    def __repr__(self) -> str:
        model, data = self.provenance.model.get("name", "?"), self.provenance.data.get("name", "?")
        count = self.records["batch"].nunique()
        parts = {"site": len(self.sites), "batch": count, "gauge": len(self.gauges)}
        counts = ", ".join(f"{n} {what if n == 1 else _PLURALS[what]}" for what, n in parts.items())
        head = f"Sounding of {model} on {data}: {counts}"
        if "affinity" not in self.gauges:
            return head
        numbers = self.summary()
        return f"{head}; affinity {numbers['min']:.3f} … {numbers['median']:.3f} … {numbers['max']:.3f}"

    def _repr_html_(self) -> str:
        """Return a table for notebooks, with a bar for the first gauge."""
        means = pd.DataFrame({gauge: self.mean(gauge) for gauge in self.gauges})
        first = means.iloc[:, 0]
        widest = max(1.0, float(first.max()))
        rows = []
        for site in self.sites:
            share = float(first[site.name]) / widest
            width = 0 if math.isnan(share) else round(120 * min(max(share, 0.0), 1.0))
            bar = f'<div style="background:#1f77a4;height:10px;width:{width}px"></div>'
            cells = "".join(f"<td>{value:.3f}</td>" for value in means.loc[site.name])
            rows.append(
                f"<tr><td>{escape(site.name)}</td><td>{escape(site.operator)}</td><td>{bar}</td>{cells}</tr>"
            )
        heads = "".join(f"<th>{escape(gauge)}</th>" for gauge in self.gauges)
        return (
            f"<p>{escape(repr(self))}</p><table><thead><tr><th>site</th><th>operator</th><th></th>{heads}"
            f"</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        )
