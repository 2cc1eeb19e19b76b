"""Would the tree look the same on other batches? A bootstrap over the batches of each sounding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from fathometer.compare.cluster import Clustering, Method, cluster
from fathometer.compare.distance import Metric, signature_distances
from fathometer.compare.gathering import Array, Soundings, comparable, signatures
from fathometer.errors import InputError
from fathometer.sounding import Sounding


@dataclass(frozen=True, eq=False)
class Stability:
    """How often a clustering comes back when batches are drawn again.

    Attributes:
        clustering: that of all batches.
        merges: a row for each merge, by height: `members`, `networks`, `height`, and `returns`, the share of
            draws in which the same networks form a cluster.
        pairs: network × network, the share of draws in which a cut into `clusters` puts two into one.
        clusters: of that cut.
        draws: how many.
        unvaried: soundings of one batch, whose signature is the same in every draw.
    """

    clustering: Clustering
    merges: pd.DataFrame
    pairs: pd.DataFrame
    clusters: int
    draws: int
    unvaried: tuple[str, ...]


def stability(
    soundings: Soundings,
    gauge: str = "affinity",
    metric: Metric = "dtw",
    *,
    method: Method = "average",
    clusters: int = 2,
    draws: int = 100,
    seed: int = 0,
    anyway: bool = False,
) -> Stability:
    """Draw the batches of every sounding with replacement, compare and cluster again, and count.

    This says what the noise of the batches does. With few batches it says too little (two batches give three
    different means), and what other weights or data would do it does not say at all.

    Args:
        soundings: of which at least one has two batches.
        gauge: what is compared.
        metric: how.
        method: of the clustering.
        clusters: into how many the tree is cut for `pairs`.
        draws: of the bootstrap.
        seed: of the draws.
        anyway: compare what differs in data, reduction or samples all the same, with a warning.
    """
    if draws < 1:
        raise InputError(f"draws: expected at least 1, got {draws}")
    named = comparable(soundings, gauge, anyway=anyway)
    whole = cluster(signature_distances(signatures(named, gauge), metric, gauge=gauge), method)
    batches = {name: _by_batch(sounding, gauge) for name, sounding in named.items()}
    unvaried = tuple(name for name, values in batches.items() if values.shape[1] < 2)
    if len(unvaried) == len(named):
        raise InputError("stability needs soundings of several batches, but each of these has one")
    names = list(whole.distances.names)
    merges = whole.merges
    returns, together = np.zeros(len(merges)), np.zeros((len(names), len(names)))
    whole.cut(clusters)  # is there such a cut?
    generator = np.random.default_rng(seed)
    for _ in range(draws):
        drawn = {name: _drawn(values, generator) for name, values in batches.items()}
        again = cluster(signature_distances(drawn, metric, gauge=gauge), method)
        found = set(again.merges)
        returns += [merge in found for merge in merges]
        label = again.cut(clusters).loc[names].to_numpy()
        together += label[:, None] == label
    table = pd.DataFrame(
        {
            "members": [", ".join(name for name in whole.names if name in merge) for merge in merges],
            "networks": [len(merge) for merge in merges],
            "height": whole.linkage[:, 2],
            "returns": returns / draws,
        }
    )
    pairs = pd.DataFrame(together / draws, index=names, columns=names)
    return Stability(whole, table, pairs, clusters, draws, unvaried)


def _by_batch(sounding: Sounding, gauge: str) -> Array:
    """`[sites, batches]`; a site that has no value in some batch has NaN there."""
    table = sounding.records.pivot(index="site", columns="batch", values=gauge)
    return table.loc[[site.name for site in sounding.sites]].to_numpy(float)


def _drawn(values: Array, generator: np.random.Generator) -> Array:
    """Means over batches drawn with replacement; where none of them has a value, over all of them."""
    chosen = values[:, generator.integers(values.shape[1], size=values.shape[1])]
    there = np.isfinite(chosen)
    sums, counts = np.where(there, chosen, 0).sum(1), there.sum(1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nanmean(values, axis=1))
