"""Figures 16 and 17: one architecture, trained in different ways, clustered by its signatures."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fathometer import Sounding
from fathometer.compare import Distances, cluster, distances, family_agreement, stability
from fathometer.report import plot_dendrogram
from papers.affinity.figure_5a import tree_agreement
from papers.affinity.ways import LEVEL, kind_of, seeds_of, way_item, way_soundings
from papers.images.ensembles import ensemble, title_of, train_ensembles
from papers.item import Answer, Answers, Claim, RunContext, Seconds

SMALL_SHARE = 0.5  # of the distance to other architectures


def run(context: RunContext) -> Answers:
    """Draw the tree of all ways of training, with other architectures."""
    ways, others = way_soundings(context), _others(context)
    methods = {name: name.rpartition(" ")[0] for name in ways}
    near = distances(ways)
    tree = cluster(near)
    draws = context.pick(smoke=10, small=100, paper=100)
    stable = stability(tree, ways, clusters=len(set(methods.values())), draws=draws)
    context.table("distances", near.frame.reset_index(names="network"))
    context.table("merges", stable.merges)
    context.figure(plot_dendrogram(tree, methods, stable.merges["returns"].to_list()))
    every = distances({**ways, **others})
    context.table("architectures", every.frame.reset_index(names="network"))
    context.note(
        "The paper's are 17 ResNet-50 of ImageNet, supervised and self-supervised in three families; these "
        "are all supervised, and differ in one thing each. The numbers at the merges say how often a "
        "cluster comes back when the batches are drawn again."
    )
    kinds = {name: kind_of(context) for name in ways} | {name: name.split()[0] for name in others}
    return {
        "groups": in_groups(near, methods),
        "neighbour": own_neighbours(near, methods),
        "small": small_distances(every, kinds),
        "architecture": own_neighbours(every, kinds),
    }


def in_groups(near: Distances, methods: Mapping[str, str]) -> Answer:
    """Check whether a cut into as many clusters as methods finds the methods."""
    found = tree_agreement(near, methods)
    return Answer(
        found.value > 0 and found.p < LEVEL,
        f"adjusted Rand index {found.value:.2f} (p = {found.p:.3g}) between a cut into "
        f"{len(set(methods.values()))} and the methods",
        {"adjusted_rand": found.value, "p": found.p},
    )


def own_neighbours(near: Distances, groups: Mapping[str, str]) -> Answer:
    """Check whether the nearest neighbour of every network is of its own group."""
    table = family_agreement(near, groups)
    same = table["same"].astype(bool)
    by_group = same.groupby(table["family"], sort=False).sum()
    sizes = table["family"].value_counts()
    words = ", ".join(f"{group} {by_group[group]} of {sizes[group]}" for group in by_group.index)
    return Answer(
        bool(same.all()),
        f"{int(same.sum())} of {len(same)} have: {words}",
        {"same": same.sum(), "networks": len(same), "silhouette": table["silhouette"].mean()},
    )


def small_distances(every: Distances, kinds: Mapping[str, str]) -> Answer:
    """Compare distances within the first architecture with those to the others."""
    frame = every.frame
    first = kinds[every.names[0]]
    own = [name for name in every.names if kinds[name] == first]
    within = frame.loc[own, own].to_numpy()[np.triu_indices(len(own), 1)]
    between = {
        kind: frame.loc[own, [name for name in every.names if kinds[name] == kind]].to_numpy()
        for kind in dict.fromkeys(kinds[name] for name in every.names if kinds[name] != first)
    }
    words = ", ".join(
        f"to {title_of(kind)} {values.mean():.3f} ({values.min():.3f} to {values.max():.3f})"
        for kind, values in between.items()
    )
    nearest = min(values.mean() for values in between.values())
    return Answer(
        within.mean() < SMALL_SHARE * nearest,
        f"mean DTW distance between {title_of(first)}s {within.mean():.3f} ({within.min():.3f} to "
        f"{within.max():.3f}), {words}",
        {"within": within.mean(), "within_max": within.max(), "nearest": nearest},
    )


def _others(context: RunContext) -> dict[str, Sounding]:
    """Measure other architectures, by kind and seed."""
    kinds, seeds = (
        context.pick(smoke=("plain8", "vgg16"), small=("plain20", "vgg16"), paper=("plain20", "vgg16")),
        seeds_of(context),
    )
    train_ensembles(context, kinds, seeds)
    return {
        f"{kind} {seed}": each
        for kind in kinds
        for seed, each in ensemble(context, kind, seeds).soundings.items()
    }


FIGURE_16 = way_item(
    name="affinity-figure-16",
    title="Figures 16 and 17: one architecture trained in different ways, clustered by DTW",
    claims={
        "groups": Claim(
            "DTW distances between signatures cluster the learning methodologies into meaningful groups.",
            "Six ways of training ResNet-20, three seeds each: the tree (average linkage), cut into six, "
            f"has an adjusted Rand index above 0 with the methods, with p < {LEVEL} over 1000 orders of "
            "these.",
        ),
        "neighbour": Claim(
            "They are clustered correctly.",
            "The nearest neighbour of every training is one of the same method.",
        ),
        "small": Claim(
            "The DTW distances between the different instances of one architecture are rather small in "
            "magnitude.",
            "Their mean over all pairs of ResNet-20 is less than half of the mean distance to the nearest "
            "other architecture (the same without residual connections, VGG-16; trained by SGD).",
        ),
        "architecture": Claim(
            "The scores retain the fact that it is the same model being trained in many different ways.",
            "The nearest neighbour of every network, of all architectures, is of its own architecture.",
        ),
    },
    run=run,
    seconds=Seconds(4, 150, 400),
)
