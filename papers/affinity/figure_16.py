"""Figures 16 and 17: one architecture, trained in different ways, clustered by its signatures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

from fathometer.compare import cluster, distances, stability
from fathometer.report import plot_dendrogram
from papers.affinity.ways import way_item, way_soundings
from papers.images.ensembles import Scores, ensemble
from papers.item import Claim, Numbers, RunContext, Simulation

LEVEL = 0.05
SMALL_SHARE = 0.5  # of the distance to other architectures
ORDERS = 1000
SITES = 19


class Labelled(NamedTuple):
    """DTW distances between networks, `[n, n]`, and the group of each."""

    matrix: Scores
    labels: Sequence[str]


class Evidence(NamedTuple):
    """One architecture, labelled by the way of its training; several, labelled by architecture."""

    ways: Labelled
    kinds: Labelled


def run(context: RunContext) -> Evidence:
    """Draw the tree of all ways of training, with other architectures."""
    ways = way_soundings(context)
    kinds = context.pick(smoke=("plain8", "vgg16"), small=("plain20", "vgg16"), paper=("plain20", "vgg16"))
    seeds = range(len(context.facts["seeds"]))  # type: ignore[arg-type]
    others = {
        f"{kind} {seed}": each
        for kind in kinds
        for seed, each in ensemble(context, kind, seeds).soundings.items()
    }
    methods = {name: name.rpartition(" ")[0] for name in ways}
    near, every = distances(ways), distances({**ways, **others})
    tree = cluster(near)
    draws = context.pick(smoke=10, small=100, paper=100)
    stable = stability(tree, ways, clusters=len(set(methods.values())), draws=draws)
    context.table("architectures", every.frame.reset_index(names="network"))
    context.figure(plot_dendrogram(tree, methods, stable.merges["returns"].to_list()))
    architectures = [*["ResNet"] * len(ways), *(name.split()[0] for name in others)]
    return Evidence(
        Labelled(near.frame.to_numpy(), list(methods.values())),
        Labelled(every.frame.to_numpy(), architectures),
    )


def groups(of: Labelled) -> Numbers:
    """Compute the adjusted Rand index of groups and the tree, cut into as many clusters, and its p.

    Of labels in another order, those have a higher index that have more equal pairs within clusters.
    """
    labels = np.unique(of.labels, return_inverse=True)[1]
    tree = linkage(squareform(of.matrix, checks=False), "average")
    cut = fcluster(tree, labels.max() + 1, "maxclust")
    first, second = np.triu_indices(len(labels), 1)
    clustered = cut[first] == cut[second]
    ordered = labels[_orders(len(labels))]
    together = (ordered[:, first[clustered]] == ordered[:, second[clustered]]).sum(1)
    alike, within = (labels[first] == labels[second]).sum(), clustered.sum()
    expected = alike * within / len(first)
    rand = (together[0] - expected) / max((alike + within) / 2 - expected, 1e-12)
    return {"rand": float(rand), "p": float((together >= together[0]).mean())}


@cache
def _orders(count: int) -> NDArray[np.intp]:
    """Return the given order, and others at random."""
    places = np.tile(np.arange(count), (ORDERS, 1))
    places[1:] = np.random.default_rng(0).permuted(places[1:], axis=1)
    return places


def neighbours(of: Labelled) -> Numbers:
    """Count the networks of each group whose nearest neighbour is of their own group."""
    labels = np.array(of.labels)
    nearest = labels[(of.matrix + np.diag(np.full(len(labels), np.inf))).argmin(1)]
    same = {name: float((nearest == name)[labels == name].sum()) for name in dict.fromkeys(of.labels)}
    return {
        "same": sum(same.values()),
        "networks": len(labels),
        "by_group": ", ".join(f"{k} {v:.0f}" for k, v in same.items()),
    }


def smallness(of: Labelled) -> Numbers:
    """Compare the mean distance within the first group with that to the nearest other group."""
    labels = np.array(of.labels)
    own = labels == labels[0]
    within = of.matrix[np.ix_(own, own)][np.triu_indices(own.sum(), 1)]
    nearest = min(float(of.matrix[np.ix_(own, labels == other)].mean()) for other in set(labels[~own]))
    return {"within": float(within.mean()), "nearest": nearest}


WAYS = [f"way {number}" for number in range(6) for _ in range(3)]
KINDS = [*["ResNet"] * 18, *["plain"] * 3, *["VGG"] * 3]


def made(generator: np.random.Generator, labels: Sequence[str], apart: float) -> Labelled:
    """Draw signatures that vary between seeds by 1 and between groups by `apart`; distances are Euclidean."""
    offsets = {label: apart * generator.normal(size=SITES) for label in dict.fromkeys(labels)}
    signatures = np.array([offsets[label] for label in labels]) + generator.normal(size=(len(labels), SITES))
    return Labelled(squareform(pdist(signatures)), labels)


def _simulation(
    words: str,
    measure: Callable[[Labelled], Numbers],
    labels: Sequence[str],
    apart: float,
    null: float = 0.0,
) -> Simulation:
    def draw(generator: np.random.Generator, present: bool, _: Numbers) -> Numbers:
        return measure(made(generator, labels, apart if present else null))

    return Simulation(words, draw)


def _all_same(numbers: Mapping[str, float]) -> bool:
    return numbers["same"] == numbers["networks"]


FIGURE_16 = way_item(
    name="affinity-figure-16",
    title="Figures 16 and 17: one architecture trained in different ways, clustered by DTW",
    run=run,
    claims={
        "groups": Claim(
            words="DTW distances between signatures cluster the learning methodologies into meaningful "
            "groups.",
            test="Six ways of training ResNet-20, three seeds each: the tree (average linkage), cut into "
            f"six, has an adjusted Rand index above 0 with the methods, with p < {LEVEL} over 1000 orders of "
            "these.",
            measure=lambda found: groups(found.ways),
            holds=lambda n: n["rand"] > 0 and n["p"] < LEVEL,
            says="adjusted Rand index {rand:.2f} (p = {p:.3g}) between a cut of the tree and the methods",
            simulation=_simulation("assumed: ways differ as much as seeds do", groups, WAYS, 1.0),
        ),
        "neighbour": Claim(
            words="They are clustered correctly.",
            test="The nearest neighbour of every training is one of the same method.",
            measure=lambda found: neighbours(found.ways),
            holds=_all_same,
            says="{same:.0f} of {networks:.0f} have ({by_group})",
            simulation=_simulation("assumed: ways differ twice as much as seeds do", neighbours, WAYS, 2.0),
        ),
        "small": Claim(
            words="The DTW distances between the different instances of one architecture are rather small in "
            "magnitude.",
            test="Their mean over all pairs of ResNet-20 is less than half of the mean distance to the "
            "nearest other architecture (the same without residual connections, VGG-16; trained by SGD).",
            measure=lambda found: smallness(found.kinds),
            holds=lambda n: n["within"] < SMALL_SHARE * n["nearest"],
            says="mean distance {within:.3f} between ResNets, {nearest:.3f} to the nearest other "
            "architecture",
            simulation=_simulation(
                "assumed: a quarter of that distance; where it is just false, half",
                smallness,
                KINDS,
                2.9,
                1.2,
            ),
        ),
        "architecture": Claim(
            words="The scores retain the fact that it is the same model being trained in many different "
            "ways.",
            test="The nearest neighbour of every network, of all architectures, is of its own architecture.",
            measure=lambda found: neighbours(found.kinds),
            holds=_all_same,
            says="{same:.0f} of {networks:.0f} have ({by_group})",
            simulation=_simulation(
                "assumed: architectures differ twice as much as seeds do", neighbours, KINDS, 2.0
            ),
        ),
    },
    seconds={"smoke": 4, "small": 150, "paper": 400},
    notes=(
        "Accuracy in per cent: {accuracy}.",
        "The numbers at the merges of the figure say how often a cluster comes back when the batches are "
        "drawn again.",
    ),
)
