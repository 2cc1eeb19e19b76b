"""Families of networks: hierarchical clustering, and whether it finds what we call a family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fathometer.compare.distance import Distances
from fathometer.compare.series import varies
from fathometer.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Method: TypeAlias = Literal["average", "complete", "single", "ward"]


@dataclass(frozen=True, eq=False)
class Clustering:
    """A tree of networks (Figure 5A).

    Attributes:
        distances: what it was made from.
        method: how the distance between clusters is taken.
        linkage: SciPy's: a row for each merge, the two clusters, its height, the number of networks.
        order: the leaves from left to right, turned so that neighbours are alike.
        cophenetic: Pearson correlation between the distances and the heights at which pairs meet; 1 means
            that the tree says it all. Missing with fewer than three networks, or where nothing varies.
    """

    distances: Distances
    method: Method
    linkage: NDArray[np.float64]
    order: tuple[int, ...]
    cophenetic: float

    @property
    def names(self) -> tuple[str, ...]:
        """The networks in the order of the leaves."""
        return tuple(self.distances.names[place] for place in self.order)

    @property
    def ordered(self) -> pd.DataFrame:
        """The distance matrix in the order of the leaves (Figure 5B)."""
        names = list(self.names)
        return self.distances.frame.loc[names, names]

    @property
    def merges(self) -> list[frozenset[str]]:
        """The networks that each merge brings together, in order of height."""
        return [frozenset(self.distances.names[leaf] for leaf in leaves) for leaves in _leaves(self.linkage)]

    def cut(self, clusters: int) -> pd.Series[int]:
        """At most so many clusters, numbered from 1 in the order of the leaves.

        Example:
            >>> from fathometer.compare import signature_distances
            >>> near = signature_distances({"a": [0.1], "b": [0.9], "c": [0.2]})
            >>> cluster(near).cut(2).sort_index().to_dict()
            {'a': 2, 'b': 1, 'c': 2}
        """
        from scipy.cluster.hierarchy import fcluster

        if not 1 <= clusters <= len(self.order):
            raise InputError(f"clusters: expected 1 to {len(self.order)}, got {clusters}")
        found = fcluster(self.linkage, clusters, "maxclust")[list(self.order)]
        return pd.Series(pd.factorize(found)[0] + 1, index=list(self.names), name="cluster")

    def plot(self, families: Mapping[str, str] | None = None, *, columns: Literal[1, 2] = 2) -> Figure:
        """The tree and its matrix. `figure.savefig("families.pdf")` keeps it.

        Args:
            families: network → family; names are coloured by it.
            columns: 1 or 2, the width in columns of a page.
        """
        from fathometer.report.figures.compare import plot_dendrogram

        return plot_dendrogram(self, families, columns=columns)


def cluster(distances: Distances, method: Method = "average") -> Clustering:
    """Hierarchical clustering by SciPy. The paper does not say which linkage it took.

    Args:
        distances: of at least two networks.
        method: `average` (the mean distance between two clusters), `complete` (the largest), `single` (the
            smallest) or `ward` (meant for Euclidean distances, which DTW is not).
    """
    from scipy.cluster.hierarchy import cophenet, leaves_list, linkage

    if method not in get_args(Method):
        raise InputError(f"method: expected one of {', '.join(get_args(Method))}, got {method!r}")
    if len(distances.names) < 2:
        raise InputError("expected at least two networks to cluster, got one; give more files")
    condensed = distances.condensed
    tree = linkage(condensed, method, optimal_ordering=True)
    met = cophenet(tree)
    known = len(condensed) > 1 and varies(condensed) and varies(met)
    agreement = float(np.corrcoef(condensed, met)[0, 1]) if known else float("nan")
    return Clustering(distances, method, tree, tuple(int(leaf) for leaf in leaves_list(tree)), agreement)


def family_agreement(distances: Distances, families: Mapping[str, str]) -> pd.DataFrame:
    """Do families come together? For each network, its nearest neighbour, and how well it sits in its family.

    `silhouette` is (b − a) / max(a, b), where a is the mean distance from the family's other members and b
    that from the members of the nearest other family (Rousseeuw, 1987): 1 well inside, below 0 nearer to
    others.
    Networks without a family are left out; families of one have no `same` and no silhouette.

    Example:
        >>> from fathometer.compare import signature_distances
        >>> near = signature_distances({"a": [0.0], "b": [1.0], "c": [9.0], "d": [10.0]})
        >>> families = {"a": "low", "b": "low", "c": "high", "d": "high"}
        >>> family_agreement(near, families)["silhouette"].round(2).to_list()
        [0.89, 0.88, 0.88, 0.89]
    """
    frame = distances.frame
    known = [name for name in distances.names if name in families]
    if len({families[name] for name in known}) < 2:
        raise InputError("expected networks of at least two families; name the families of more networks")
    rows = []
    for name in known:
        to = frame.loc[name, [other for other in known if other != name]]
        own = to.index.map(families.get) == families[name]
        nearest = str(to.idxmin())
        within = float(to[own].mean()) if own.any() else float("nan")
        between = float(to[~own].groupby(families.get).mean().min())
        widest = max(within, between)
        rows.append(
            {
                "network": name,
                "family": families[name],
                "nearest": nearest,
                "nearest_family": families[nearest],
                "distance": float(to.min()),
                "same": families[nearest] == families[name] if own.any() else None,
                "silhouette": (between - within) / widest if own.any() and widest else float("nan"),
            }
        )
    return pd.DataFrame(rows)


def adjusted_rand(first: Sequence[object], second: Sequence[object]) -> float:
    """How far two partitions agree: 1 if they are one, 0 on average by chance (Hubert and Arabie, 1985).

    (Σ C(nᵢⱼ, 2) − E) / (½ (A + B) − E), where nᵢⱼ counts what is in part i of one and part j of the other,
    A = Σ C(aᵢ, 2) and B = Σ C(bⱼ, 2) are the same of the parts alone, and E = A B / C(n, 2).

    Example:
        >>> adjusted_rand(["a", "a", "b", "b"], [2, 2, 1, 1]), round(adjusted_rand("aabb", "abab"), 3)
        (1.0, -0.5)
    """
    if len(first) != len(second) or len(first) < 2:
        raise InputError(
            f"expected two partitions of the same two things or more, got {len(first)} and {len(second)}"
        )
    both, a, b = (
        sum(comb(count, 2) for count in Counter(part).values())
        for part in (zip(first, second, strict=True), first, second)
    )
    expected = a * b / comb(len(first), 2)
    largest = (a + b) / 2
    return 1.0 if largest == expected else (both - expected) / (largest - expected)


def _leaves(tree: NDArray[np.float64]) -> list[frozenset[int]]:
    count = len(tree) + 1
    found: list[frozenset[int]] = [frozenset([leaf]) for leaf in range(count)]
    for left, right in tree[:, :2].astype(int):
        found.append(found[left] | found[right])
    return found[count:]
