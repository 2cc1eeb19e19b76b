"""How usual a number is: its percentile among trained networks, at sites of the same operator and role."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import pandas as pd

from fathometer.results.sounding import Sounding

MIN_NETWORKS = 5
"""With fewer reference networks that have such sites, there is no percentile."""


def reference_percentiles(sounding: Sounding, gauge: str = "affinity") -> pd.Series[float]:
    """Return the per cent of the reference sites with a smaller value, for each site.

    The role is whether the input is a sum, as after a block of a ResNet; where the sounding names a family
    that enough reference networks have, only these count. NaN where too few of them have such sites, and
    everywhere if the sounding is not of images that were reduced by the mean, as the reference is. The
    network itself does not count.
    """
    found = pd.Series(math.nan, [site.name for site in sounding.sites], name="percentile", dtype=float)
    reduction = sounding.provenance.settings.get("reduction")
    is_mean = isinstance(reduction, dict) and reduction.get("pooling") == "mean"
    data = sounding.provenance.data
    are_images = len(data.get("sample_shape", ())) == 3 and data.get("kind") != "random"
    known = _reference()
    if not is_mean or not are_images or gauge not in known or gauge not in sounding.gauges:
        return found
    known = known[known["checksum"] != sounding.provenance.model.get("checksum")]
    family = known[known["family"] == sounding.provenance.model.get("family")]
    values = sounding.mean(gauge)
    usual: dict[Any, pd.Series[float]] = {}
    for among in (known, family):
        for role, alike in among.groupby(["operator", "after_sum"]):
            if alike["network"].nunique() >= MIN_NETWORKS:
                usual[role] = alike[gauge].dropna()
    for site in sounding.sites:
        others = usual.get((site.operator, site.after_sum))
        if site.kind == "activation" and others is not None and math.isfinite(values[site.name]):
            found[site.name] = 100 * float((others < values[site.name]).mean())
    return found


@cache
def _reference() -> pd.DataFrame:
    """Return the values of all reference networks, and which weights they are of."""
    from fathometer.reference import load, table

    checksums = {name: each.provenance.model.get("checksum") for name, each in load().items()}
    found = table()
    return found.assign(checksum=found["network"].map(checksums))
