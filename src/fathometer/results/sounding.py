"""The result of measuring one network on one data set: site × batch × gauge, and how it came about."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from difflib import get_close_matches
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from fathometer.capture.sites import Site
from fathometer.errors import InputError
from fathometer.results.provenance import Provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEYS = ("site", "batch", "n", "d")
"""Columns of `Sounding.records` that are not gauges."""


_PLURALS = {"site": "sites", "batch": "batches", "gauge": "gauges"}


@dataclass(frozen=True, eq=False)
class Sounding:
    """What was measured, and how.

    Attributes:
        sites: in order of depth.
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
        """The non-linearity signature: the affinity score of every site, the mean over batches."""
        return self.mean("affinity")

    @property
    def table(self) -> pd.DataFrame:
        """Site × gauge: mean, standard deviation over batches, and number of batches."""
        grouped = self.records.groupby("site", sort=False)[self.gauges]
        return grouped.agg(["mean", "std", "count"]).reindex([site.name for site in self.sites])

    @property
    def batches(self) -> pd.DataFrame:
        """One row for each site and batch, by both."""
        return self.records.set_index(["site", "batch"])

    def mean(self, gauge: str) -> pd.Series[float]:
        """A gauge at every site, the mean over batches."""
        return self._by_site(gauge).mean().reindex([site.name for site in self.sites])

    def std(self, gauge: str) -> pd.Series[float]:
        """The standard deviation of a gauge over batches; missing where there is one batch."""
        return self._by_site(gauge).std().reindex([site.name for site in self.sites])

    def summary(self, gauge: str = "affinity") -> pd.Series[float]:
        """Of a gauge over the sites: min, median, max and their spread, max − min (Figure 3)."""
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
        """The gauge along depth, with error bars over batches. `figure.savefig("signature.pdf")` keeps it.

        Args:
            gauge: what to show.
            columns: 1 or 2, the width in columns of a page.
            strip: the network below as a strip, coloured by value.
            distribution: a histogram beside.
        """
        from fathometer.report.figures.signature import plot_signature

        return plot_signature(self, gauge, columns=columns, strip=strip, distribution=distribution)

    def save(self, path: str | Path) -> Path:
        """One file, `.json` or `.parquet`; it appears once it is complete."""
        from fathometer.results.sounding_file import save

        return save(self, Path(path))

    def _by_site(self, gauge: str) -> Any:
        if gauge not in self.gauges:
            near = get_close_matches(gauge, self.gauges, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InputError(f"{gauge!r} was not measured here, but {', '.join(self.gauges)}{hint}")
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
        """For notebooks: the sites with a bar for the first gauge, and the rest as numbers."""
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
