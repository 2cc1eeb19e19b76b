"""Families of networks: hierarchical clustering, its stability, and agreement with what we call a family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fathometer.compare.distance import Distances, signature_distances
from fathometer.compare.series import varies
from fathometer.compare.soundings import Array, Soundings, after_sums, aspects_of, by_name
from fathometer.errors import InputError, check_choice, import_extra
from fathometer.gauges.gauge import indices_of_equal
from fathometer.results.sounding import Sounding, column_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Method: TypeAlias = Literal["average", "complete", "single", "ward"]


@dataclass(frozen=True, eq=False)
class Clustering:
    """A tree of networks (Figure 5A).

    Attributes:
        distances: the distances between the networks.
        method: how the distance between two clusters is computed.
        linkage: SciPy's linkage matrix: a row per merge: both clusters, height, number of networks.
        order: the leaves from left to right, ordered so that neighbours are alike.
        cophenetic: Pearson correlation between the distances and the heights at which pairs merge; 1 means
            that the tree represents them exactly. NaN with fewer than three networks, or if nothing varies.
    """

    distances: Distances
    method: Method
    linkage: NDArray[np.float64]
    order: tuple[int, ...]
    cophenetic: float

    @property
    def names(self) -> tuple[str, ...]:
        """The networks in the order of the leaves."""
        return tuple(self.distances.names[leaf] for leaf in self.order)

    @property
    def ordered(self) -> pd.DataFrame:
        """The distance matrix in the order of the leaves (Figure 5B)."""
        names = list(self.names)
        return self.distances.frame.loc[names, names]

    @property
    def merges(self) -> list[frozenset[str]]:
        """The networks of each merge, in order of height."""
        return [frozenset(self.distances.names[leaf] for leaf in leaves) for leaves in _leaves(self.linkage)]

    def cut(self, clusters: int) -> pd.Series[int]:
        """Cut the tree into at most so many clusters, numbered from 1 in the order of the leaves.

        Example:
            >>> from fathometer.compare import signature_distances
            >>> near = signature_distances({"a": [0.1], "b": [0.9], "c": [0.2]})
            >>> cluster(near).cut(2).sort_index().to_dict()
            {'a': 2, 'b': 1, 'c': 2}
        """
        from scipy.cluster.hierarchy import fcluster

        if not 1 <= clusters <= len(self.order):
            raise InputError(f"expected 1 to {len(self.order)}, got {clusters}", parameter="clusters")
        found = fcluster(self.linkage, clusters, "maxclust")[list(self.order)]
        return pd.Series(pd.factorize(found)[0] + 1, index=list(self.names), name="cluster")

    def plot(self, families: Mapping[str, str] | None = None, *, columns: Literal[1, 2] = 2) -> Figure:
        """Draw the tree and its matrix. `figure.savefig("families.pdf")` saves the figure.

        Args:
            families: network → family; names are coloured by it.
            columns: width of the figure in columns of a page, 1 or 2.
        """
        from fathometer.report import plot_dendrogram

        return plot_dendrogram(self, families, columns=columns)


def cluster(distances: Distances, method: Method = "average") -> Clustering:
    """Cluster networks hierarchically, with SciPy. The paper does not say which linkage it uses.

    Args:
        distances: of at least two networks.
        method: `average` (the mean distance between two clusters), `complete` (the largest), `single` (the
            smallest) or `ward` (meant for Euclidean distances, which DTW is not).
    """
    from scipy.cluster.hierarchy import cophenet, leaves_list, linkage

    check_choice("method", method, Method)
    if len(distances.names) < 2:
        raise InputError("expected at least two networks to cluster, got one; give more files")
    condensed = distances.condensed
    tree = linkage(condensed, method, optimal_ordering=True)
    heights = cophenet(tree)
    known = len(condensed) > 1 and varies(condensed) and varies(heights)
    agreement = float(np.corrcoef(condensed, heights)[0, 1]) if known else float("nan")
    return Clustering(distances, method, tree, tuple(int(leaf) for leaf in leaves_list(tree)), agreement)


def family_agreement(distances: Distances, families: Mapping[str, str]) -> pd.DataFrame:
    """Find each network's nearest neighbour, and how well it fits into its family.

    `silhouette` is scikit-learn's: 1 well inside the family, below 0 nearer to another (Rousseeuw, 1987).
    Networks without a family are left out; families of one network have no `same` and no silhouette.

    Example:
        >>> from fathometer.compare import signature_distances
        >>> near = signature_distances({"a": [0.0], "b": [1.0], "c": [9.0], "d": [10.0]})
        >>> families = {"a": "low", "b": "low", "c": "high", "d": "high"}
        >>> family_agreement(near, families)["silhouette"].round(2).to_list()
        [0.89, 0.88, 0.88, 0.89]
    """
    known = [name for name in distances.names if name in families]
    labels = pd.Series({name: families[name] for name in known}, dtype=object)
    sizes = labels.value_counts()
    if len(sizes) < 2:
        raise InputError("expected networks of at least two families; name the families of more networks")
    single = (labels.map(sizes) == 1).to_numpy()
    frame = distances.frame.loc[known, known]
    others = frame.mask(np.eye(len(known), dtype=bool))
    nearest = others.idxmin(axis=1)
    nearest_family = nearest.map(labels)
    silhouettes = np.full(len(known), np.nan)
    if not single.all():  # scikit-learn wants fewer labels than samples
        samples = _metrics().silhouette_samples(frame.to_numpy(), labels.to_numpy(str), metric="precomputed")
        silhouettes = np.where(single, np.nan, samples)
    same = (nearest_family == labels).astype(object).mask(single, None)
    return pd.DataFrame(
        {
            "network": known,
            "family": labels.to_numpy(),
            "nearest": nearest.to_numpy(),
            "nearest_family": nearest_family.to_numpy(),
            "distance": others.min(axis=1).to_numpy(),
            "same": same.to_numpy(),
            "silhouette": silhouettes,
        }
    )


def adjusted_rand(first: Sequence[object], second: Sequence[object]) -> float:
    """Compute the adjusted Rand index of two partitions: 1 if they are equal, 0 on average by chance.

    Example:
        >>> adjusted_rand(["a", "a", "b", "b"], [2, 2, 1, 1]), round(adjusted_rand("aabb", "abab"), 3)
        (1.0, -0.5)
    """
    if len(first) != len(second):
        raise InputError(f"expected two partitions of the same items, got {len(first)} and {len(second)}")
    return float(_metrics().adjusted_rand_score(list(first), list(second)))


def _metrics() -> Any:
    purpose = "the agreement with families"
    package = import_extra("sklearn", "metrics", extra="compare", purpose=purpose, package="scikit-learn")
    return package.metrics


@dataclass(frozen=True, eq=False)
class Stability:
    """How often a clustering is found again when batches are resampled.

    Attributes:
        clustering: the clustering of all batches.
        merges: a row for each merge, by height: `members`, `networks`, `height`, and `returns`, the share of
            draws in which the same networks form a cluster.
        pairs: network × network, the share of draws in which a cut into `clusters` puts both into one.
        clusters: number of clusters of that cut.
        draws: number of bootstrap draws.
        single_batch: soundings with one batch, whose signature is the same in every draw.
    """

    clustering: Clustering
    merges: pd.DataFrame
    pairs: pd.DataFrame
    clusters: int
    draws: int
    single_batch: tuple[str, ...]


def stability(
    tree: Clustering, soundings: Soundings, *, clusters: int = 2, draws: int = 100, seed: int = 0
) -> Stability:
    """Bootstrap the batches: draw them with replacement, cluster again, and count which clusters return.

    Soundings with the same data, seed, samples in a batch and number of batches saw the same batches. These
    are resampled together, so that a batch on which all networks score high moves all of them. Others are
    resampled independently.

    This shows the noise between batches. With few batches it shows too little (two batches give three
    different means), and it says nothing about other weights or data.

    Args:
        tree: the clustering of all batches: `cluster(distances(soundings))`.
        soundings: those of the tree; at least one must have two batches.
        clusters: number of clusters of the cut for `pairs`.
        draws: number of bootstrap draws.
        seed: seed of the draws.
    """
    if draws < 1:
        raise InputError(f"expected at least 1, got {draws}", parameter="draws")
    gauge, metric = tree.distances.gauge, tree.distances.metric
    named = by_name(soundings, gauge)
    names = list(tree.distances.names)
    if set(named) != set(names):
        raise InputError(f"expected the soundings of the tree, {', '.join(names)}; got {', '.join(named)}")
    batches = {name: _by_batch(named[name], gauge) for name in names}
    single_batch = tuple(name for name, values in batches.items() if values.shape[1] < 2)
    if len(single_batch) == len(named):
        raise InputError(
            "needs soundings of several batches, got one batch of each; measure with more batches",
            parameter="draws",
        )
    tree.cut(clusters)  # refuses a number of clusters that is too large
    groups, roles = _same_batches(named, batches), after_sums(named, gauge)
    merges = tree.merges
    returns, same_cluster = np.zeros(len(merges)), np.zeros((len(names), len(names)))
    generator = np.random.default_rng(seed)
    for _ in range(draws):
        drawn: dict[str, Array] = {}
        for members in groups:
            count = batches[members[0]].shape[1]
            chosen = np.asarray(generator.integers(count, size=count))
            drawn |= {name: _mean(batches[name], chosen) for name in members}
        ordered = {name: drawn[name] for name in names}
        again = cluster(signature_distances(ordered, metric, gauge=gauge, roles=roles), tree.method)
        found = set(again.merges)
        returns += [merge in found for merge in merges]
        label = again.cut(clusters).loc[names].to_numpy()
        same_cluster += label[:, None] == label
    table = pd.DataFrame(
        {
            "members": [", ".join(name for name in tree.names if name in merge) for merge in merges],
            "networks": [len(merge) for merge in merges],
            "height": tree.linkage[:, 2],
            "returns": returns / draws,
        }
    )
    pairs = pd.DataFrame(same_cluster / draws, index=names, columns=names)
    return Stability(tree, table, pairs, clusters, draws, single_batch)


def _same_batches(named: dict[str, Sounding], batches: dict[str, Array]) -> list[list[str]]:
    """Group the names of soundings that saw the same batches."""
    soundings = [named[name] for name in batches]
    words = zip(*(aspects_of(soundings, aspect) for aspect in ("data", "seed", "samples")), strict=True)
    names, counts = list(batches), (values.shape[1] for values in batches.values())
    return [[names[index] for index in group] for group in indices_of_equal(zip(words, counts, strict=True))]


def _by_batch(sounding: Sounding, gauge: str) -> Array:
    """Return a gauge as `[sites, batches]`, NaN where a site has no value in a batch."""
    table = sounding.records.pivot(index="site", columns="batch", values=column_of(gauge, sounding.gauges))
    return table.loc[[site.name for site in sounding.sites]].to_numpy(float)


def _mean(values: Array, chosen: NDArray[np.int64]) -> Array:
    """Average over the drawn batches; where none of them has a value, over all batches."""
    drawn = values[:, chosen]
    there = np.isfinite(drawn)
    sums, counts = np.where(there, drawn, 0).sum(1), there.sum(1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nanmean(values, axis=1))


def _leaves(tree: NDArray[np.float64]) -> list[frozenset[int]]:
    count = len(tree) + 1
    found: list[frozenset[int]] = [frozenset([leaf]) for leaf in range(count)]
    for left, right in tree[:, :2].astype(int):
        found.append(found[left] | found[right])
    return found[count:]
