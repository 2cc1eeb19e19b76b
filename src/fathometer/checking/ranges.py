"""How usual a number is: its percentile among trained networks, at sites of the same operator and role."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
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
    model, values = sounding.provenance.model, sounding.mean(gauge)
    own = model.get("checksum")
    usual = _usual(gauge, model.get("family"), own if (known["checksum"] == own).any() else None)
    for site in sounding.sites:
        others = usual.get((site.operator, site.after_sum))
        if site.kind == "activation" and others is not None and math.isfinite(values[site.name]):
            found[site.name] = 100 * float(np.searchsorted(others, values[site.name])) / len(others)
    return found


@cache
def _usual(gauge: str, family: str | None, own: str | None) -> dict[Any, npt.NDArray[np.float64]]:
    """Return the values of the reference networks by operator and role, sorted; without the own network."""
    known = _reference()
    known = known[known["checksum"] != own]
    usual = {}
    for among in (known, known[known["family"] == family]):
        for role, alike in among.groupby(["operator", "after_sum"]):
            if alike["network"].nunique() >= MIN_NETWORKS:
                usual[role] = np.sort(alike[gauge].dropna().to_numpy(float))
    return usual


@cache
def _reference() -> pd.DataFrame:
    """Return the values of all reference networks, and which weights they are of."""
    from fathometer.reference import load, table

    checksums = {name: each.provenance.model.get("checksum") for name, each in load().items()}
    found = table()
    return found.assign(checksum=found["network"].map(checksums))
