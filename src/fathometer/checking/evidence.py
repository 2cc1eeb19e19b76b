"""What the rules look at: a table of sites, tables of modules and weights, and facts of the whole network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from fathometer.checking.ranges import reference_percentiles
from fathometer.results.sounding import Sounding


@dataclass(frozen=True)
class Evidence:
    """Everything that rules may look at; what is not known is None or missing.

    Attributes:
        sites: a row for each site in order of depth: `operator`, `kind`, the means over batches of `n`, `d`
            and every column of the sounding, and the `percentile` of the affinity score among the reference
            networks. The index holds the names of the sites.
        modules: a row for each module call of the first forward pass, in the order in which they ended:
            `module`, `kind` (its class), `finite`, `largest` (|output|), `median` of |output|, and for
            BatchNorm `mean_drift` and `variance_drift`.
        weights: a row for each tensor of weights: `name`, `kind`, `finite`, `is_matrix`, and what an
            untrained one looks like (`checking.weights`).
        norms: a row for each BatchNorm: `module`, `training`, `is_default`, `is_identity`, `is_untouched`.
        trials: a row for each other way to prepare the inputs: `name`, `advice`, `accuracy`, `loss`,
            `samples`, `drift`. The first row is the data as they are.
        facts: `accuracy`, `loss`, `perplexity`, `classes`, `samples`, `training`, `dtype` and others.
    """

    sites: pd.DataFrame | None = None
    modules: pd.DataFrame | None = None
    weights: pd.DataFrame | None = None
    norms: pd.DataFrame | None = None
    trials: pd.DataFrame | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def missing(self, need: str) -> str:
        """Say why a need of a rule is not met, or nothing if it is.

        A need is `sites.affinity`, a column of a table; `weights`, a table; or `facts.accuracy`.
        """
        part, _, column = need.partition(".")
        table = getattr(self, part)
        if part == "facts":
            return "" if column in table else f"needs {_FACTS.get(column, column)}"
        if table is None:
            return _TABLES[part]
        gauge = column.removesuffix("_x").removesuffix("_y")
        if column and column not in table:
            return f"needs the gauge {gauge}; the set check has all"
        if column and table[column].isna().all():
            return _EMPTY.get(column, f"{gauge} has no value at any site")
        return ""


_NETWORK = "needs the network itself: fathometer.check(model, data)"
_TABLES = {
    "sites": "needs values at activations, and none could be measured",
    "modules": _NETWORK,
    "weights": _NETWORK,
    "norms": _NETWORK,
    "trials": "needs images, and labels or a BatchNorm",
}
_EMPTY = {
    "percentile": "no reference: too few trained networks have such sites, or it is not the mean over images",
    "saturated": "no activation here is bounded",
}
_FACTS = {
    "accuracy": "labels that number the network's outputs",
    "classes": "the number of classes, which older soundings do not have",
    "perplexity": "a causal language model",
    "training": _NETWORK.removeprefix("needs "),
}


def evidence_of(sounding: Sounding) -> Evidence:
    """Return what a sounding alone says."""
    sites = sounding.with_enough_samples().sites if len(sounding.undersampled) < len(sounding.sites) else ()
    grouped = sounding.records.groupby("site", sort=False)
    table = grouped[["n", "d", *sounding.gauges]].mean()
    by_name = {site.name: site for site in sounding.sites}
    table.insert(0, "operator", [by_name[str(name)].operator for name in table.index])
    table.insert(1, "kind", [by_name[str(name)].kind for name in table.index])
    if "affinity" in table:
        table["percentile"] = reference_percentiles(sounding)
    table = table.reindex([site.name for site in sites])
    known = sounding.provenance.data.get("outcome")
    facts: dict[str, Any] = dict(known) if isinstance(known, dict) else {}
    facts["samples"] = sounding.provenance.data.get("samples_measured", 0)
    reduction = sounding.provenance.settings.get("reduction")
    facts["pooling"] = reduction.get("pooling") if isinstance(reduction, dict) else None
    return Evidence(sites=table, facts=facts)
