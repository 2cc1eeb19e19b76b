"""A sounding as named numbers, for loggers."""

from __future__ import annotations

import re

from fathometer.results.sounding import Sounding


def scalars(sounding: Sounding, prefix: str = "fathometer") -> dict[str, float]:
    """`fathometer/affinity/layer1.0.relu` for every gauge and site, and what `summary_scalars` gives.

    Loggers differ in the characters they allow: whatever is no letter, digit, dot, slash or underscore
    becomes a hyphen, as in `layer1.0.relu-2` for the second call. Of names that become the same, all but the
    first get a number.
    """
    found = summary_scalars(sounding, prefix)
    for gauge in sounding.gauges:
        for site, value in sounding.mean(gauge).items():
            name = unique = clean(f"{prefix}/{gauge}/{str(site).lstrip('/')}")
            number = 1
            while unique in found:
                unique = f"{name}-{(number := number + 1)}"
            found[unique] = float(value)
    return found


def summary_scalars(sounding: Sounding, prefix: str = "fathometer") -> dict[str, float]:
    """`fathometer/affinity_min`, `_median` and `_max` over the sites, for every gauge."""
    return {
        clean(f"{prefix}/{gauge}_{name}"): float(sounding.summary(gauge)[name])
        for gauge in sounding.gauges
        for name in ("min", "median", "max")
    }


def clean(name: str) -> str:
    """A name that every logger takes."""
    return re.sub(r"[^\w./-]", "-", name, flags=re.ASCII)
