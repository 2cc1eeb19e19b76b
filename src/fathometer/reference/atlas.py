"""The reference networks: trained ones of many families, measured with all standard gauges."""

from __future__ import annotations

from functools import cache
from importlib import resources

import pandas as pd

from fathometer.reference.packing import Unpacked, unpack
from fathometer.results.sounding import Sounding

FILE = "networks.json.xz"


def load(data: str | None = None) -> dict[str, Sounding]:
    """Return the soundings of the reference networks, by name: `imagenet/resnet50`, `cifar10/resnet20`.

    Each has one batch, with the mean over the batches that were measured, to four digits; `std` has the
    standard deviations. The provenance says where the weights come from, what is peculiar about them, how
    accurate the network was on the measured images, and on which commit and machine it was measured.
    Signatures of different data can be compared, but not taken for differences between networks alone.

    Args:
        data: `imagenet` or `cifar10` for the networks of these data alone.

    Example:
        >>> networks = load("cifar10")
        >>> networks["cifar10/resnet20"].signature.round(1).to_list()[:3]
        [0.8, 0.7, 0.9]
    """
    found = _unpacked().soundings
    return {name: each for name, each in found.items() if data is None or name.startswith(f"{data}/")}


def std() -> dict[str, pd.DataFrame]:
    """Return the standard deviations over batches, site × gauge, by the names of the networks."""
    return dict(_unpacked().stds)


def table() -> pd.DataFrame:
    """Return a row for each network and site.

    Columns: `network`, `data`, `family`, `year`, `accuracy` (in per cent, as published), `measured_accuracy`
    (a share, on the measured images), `site`, `operator`, `after_sum` (whether the input is a sum, as at the
    end of a block of a ResNet), `depth` from 0 to 1, and every gauge as its mean over batches.
    """
    parts = []
    for name, sounding in load().items():
        model, count = sounding.provenance.model, len(sounding.sites)
        facts = model.get("facts", {})
        known = {
            "network": name,
            "data": name.partition("/")[0],
            "family": model.get("family"),
            "year": facts.get("year"),
            "accuracy": facts.get("accuracy"),
            "measured_accuracy": sounding.accuracy,
            "site": [site.name for site in sounding.sites],
            "operator": [site.operator for site in sounding.sites],
            "after_sum": [site.after_sum for site in sounding.sites],
            "depth": [index / max(count - 1, 1) for index in range(count)],
        }
        values = {gauge: sounding.mean(gauge).to_numpy() for gauge in sounding.gauges}
        parts.append(pd.DataFrame(known | values))
    numbers = {"accuracy": float, "measured_accuracy": float}
    return pd.concat([part.astype(numbers) for part in parts], ignore_index=True)


@cache
def _unpacked() -> Unpacked:
    return unpack(resources.files(__package__).joinpath(FILE).read_bytes(), FILE)
