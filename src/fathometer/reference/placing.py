"""Place a network among the reference networks: its nearest neighbours, and how usual its signature is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from fathometer.compare import (
    Distances,
    known_distances,
    known_facts,
    statistics,
)
from fathometer.compare.distance import DEFAULT_METRIC, Metric
from fathometer.compare.summary import STATISTICS
from fathometer.reference.atlas import load
from fathometer.results.sounding import Sounding


class Placement(NamedTuple):
    """Where networks are among the reference networks.

    Attributes:
        nearest: for each network, in order of distance: `network`, `nearest`, `distance`, and of the nearest
            `family`, `data`, `accuracy` in per cent as published, `year`.
        percentiles: `network`, `statistic` of its signature, `value`, `percentile` (the per cent of the
            reference networks with a smaller value), and the `low`, `median` and `high` of these.
        distances: of all networks, those of the reference and the given ones.
    """

    nearest: pd.DataFrame
    percentiles: pd.DataFrame
    distances: Distances


def place(
    soundings: Mapping[str, Sounding],
    gauge: str = "affinity",
    metric: Metric = DEFAULT_METRIC,
    *,
    data: str | None = None,
    count: int = 5,
) -> Placement:
    """Place networks among the reference networks.

    Args:
        soundings: one's own, by name. They should be measured as the reference was: images, the mean over
            positions, some 500 samples in a batch.
        gauge: the gauge to compare; the reference has the standard ones, and `cka`.
        metric: see `fathometer.compare.distances`.
        data: `imagenet` or `cifar10`, for the reference networks of these data alone.
        count: number of nearest networks.

    Example:
        >>> mine = load("cifar10")["cifar10/resnet56"]
        >>> found = place({"mine": mine}, data="cifar10", count=2)
        >>> found.nearest["nearest"].to_list()[0], found.nearest["distance"].to_list()[0]
        ('cifar10/resnet56', 0.0)
    """
    known = load(data)
    every = {**known, **soundings}
    near = known_distances(every, gauge, metric)
    facts = known_facts(known).reindex(columns=["family", "accuracy", "year"])
    facts["year"] = facts["year"].astype("Int64")
    rows = []
    for name in soundings:
        row = near.matrix[near.names.index(name)]
        closest = sorted((float(row[near.names.index(other)]), other) for other in known)[:count]
        for distance, other in closest:
            found = {"network": name, "nearest": other, "distance": distance}
            rows.append(found | {"data": other.partition("/")[0], **facts.loc[other].to_dict()})
    numbers = statistics(every, gauge)
    usual = numbers.loc[list(known)]
    percentiles = [
        {
            "network": name,
            "statistic": statistic,
            "value": numbers.loc[name, statistic],
            "percentile": 100 * float((usual[statistic] < numbers.loc[name, statistic]).mean()),
            **dict(zip(("low", "median", "high"), usual[statistic].quantile([0, 0.5, 1]), strict=True)),
        }
        for name in soundings
        for statistic in STATISTICS
    ]
    return Placement(pd.DataFrame(rows), pd.DataFrame(percentiles), near)
