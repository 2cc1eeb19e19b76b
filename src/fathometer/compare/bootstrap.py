"""Would the tree look the same on other batches? A bootstrap over the batches of each sounding."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fathometer.compare.aspects import aspects_of
from fathometer.compare.distance import Metric, signature_distances
from fathometer.compare.gathering import Array, Soundings, by_name, comparable, signatures
from fathometer.compare.trees import Clustering, Method, cluster
from fathometer.errors import InputError
from fathometer.results.sounding import Sounding


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
        together: sets of soundings that saw the same batches and were drawn together.
    """

    clustering: Clustering
    merges: pd.DataFrame
    pairs: pd.DataFrame
    clusters: int
    draws: int
    unvaried: tuple[str, ...]
    together: tuple[frozenset[str], ...]


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
    """Draw the batches with replacement, compare and cluster again, and count.

    Soundings that share data, seed, samples in a batch and number of batches saw the same batches: they are
    drawn together, with one choice of batches for all, so that a batch on which all networks score high moves
    all of them. Others are drawn independently.

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
    named = comparable(soundings, gauge, anyway=anyway)
    tree = cluster(signature_distances(signatures(named, gauge), metric, gauge=gauge), method)
    return stability_of(tree, named, clusters=clusters, draws=draws, seed=seed)


def stability_of(
    tree: Clustering, soundings: Soundings, *, clusters: int = 2, draws: int = 100, seed: int = 0
) -> Stability:
    """The same for a tree that is there, of these soundings; gauge, metric and method are the tree's."""
    if draws < 1:
        raise InputError(f"draws: expected at least 1, got {draws}")
    named = by_name(soundings)
    names = list(tree.distances.names)
    if set(named) != set(names):
        raise InputError(f"expected the soundings of the tree, {', '.join(names)}; got {', '.join(named)}")
    gauge, metric = tree.distances.gauge, tree.distances.metric
    batches = {name: _by_batch(named[name], gauge) for name in names}
    unvaried = tuple(name for name, values in batches.items() if values.shape[1] < 2)
    if len(unvaried) == len(named):
        raise InputError(
            "stability: expected soundings of several batches, got one of each; measure with more batches"
        )
    tree.cut(clusters)  # is there such a cut?
    groups = _same_batches(named, batches)
    merges = tree.merges
    returns, together = np.zeros(len(merges)), np.zeros((len(names), len(names)))
    generator = np.random.default_rng(seed)
    for _ in range(draws):
        drawn: dict[str, Array] = {}
        for members in groups:
            count = batches[members[0]].shape[1]
            chosen = np.asarray(generator.integers(count, size=count))
            drawn |= {name: _mean(batches[name], chosen) for name in members}
        again = cluster(
            signature_distances({name: drawn[name] for name in names}, metric, gauge=gauge), tree.method
        )
        found = set(again.merges)
        returns += [merge in found for merge in merges]
        label = again.cut(clusters).loc[names].to_numpy()
        together += label[:, None] == label
    table = pd.DataFrame(
        {
            "members": [", ".join(name for name in tree.names if name in merge) for merge in merges],
            "networks": [len(merge) for merge in merges],
            "height": tree.linkage[:, 2],
            "returns": returns / draws,
        }
    )
    pairs = pd.DataFrame(together / draws, index=names, columns=names)
    shared = tuple(frozenset(members) for members in groups if len(members) > 1)
    return Stability(tree, table, pairs, clusters, draws, unvaried, shared)


def _same_batches(named: dict[str, Sounding], batches: dict[str, Array]) -> list[list[str]]:
    """Names of soundings that saw the same batches, in order of the first."""
    soundings = [named[name] for name in batches]
    words = zip(*(aspects_of(soundings, aspect) for aspect in ("data", "seed", "samples")), strict=True)
    groups: dict[Hashable, list[str]] = {}
    for (name, values), key in zip(batches.items(), words, strict=True):
        groups.setdefault((key, values.shape[1]), []).append(name)
    return list(groups.values())


def _by_batch(sounding: Sounding, gauge: str) -> Array:
    """`[sites, batches]`; a site that has no value in some batch has NaN there."""
    table = sounding.records.pivot(index="site", columns="batch", values=gauge)
    return table.loc[[site.name for site in sounding.sites]].to_numpy(float)


def _mean(values: Array, chosen: NDArray[np.int64]) -> Array:
    """Means over the batches drawn; where none of them has a value, over all of them."""
    drawn = values[:, chosen]
    there = np.isfinite(drawn)
    sums, counts = np.where(there, drawn, 0).sum(1), there.sum(1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nanmean(values, axis=1))
