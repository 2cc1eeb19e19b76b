"""Figure 5 (A): does a tree of signatures find the families?"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from fathometer.compare import Clustering, Distances, adjusted_rand, cluster, distances, family_agreement
from fathometer.report import plot_dendrogram
from papers.affinity.census import (
    EARLY,
    LATER,
    PRIORS,
    Census,
    judged,
    keep_figure,
    listed,
    needs,
    network_item,
    take_census,
)
from papers.item import Answer, Answers, Claim, RunContext
from papers.ranks import Chance, label_chance

LEVEL = 0.01  # of the agreement between clusters and families
LEAST = 3  # families with relatives


def run(context: RunContext) -> Answers:
    """Draw the tree of all networks."""
    census = take_census(context)
    near = distances(census.soundings)
    tree = cluster(near)
    context.table("merges", _merges(tree))
    context.table("neighbours", family_agreement(near, census.families))
    keep_figure(context, census, plot_dendrogram(tree, census.families))
    return {
        "families": judged(census, lacking_relatives, agreement),
        "all": judged(census, lacking_relatives, own_clusters),
        "across": judged(census, needs(*EARLY, *LATER, "ViT", *PRIORS), swin_neighbours),
    }


def lacking_relatives(census: Census) -> str:
    """Require enough families of two networks or more."""
    counts = pd.Series(census.families).value_counts()
    there = int((counts > 1).sum())
    return "" if there >= LEAST else f"{LEAST} families of two trained networks or more (here {there})"


def agreement(census: Census) -> Answer:
    """Check whether the tree, cut into as many clusters as families, agrees with them."""
    near = distances(census.only(census.families).soundings)
    found = tree_agreement(near, census.families)
    same = family_agreement(near, census.families)["same"].dropna().astype(bool)
    return Answer(
        found.value > 0 and found.p < LEVEL,
        f"adjusted Rand index {found.value:.2f} (p = {found.p:.3g}); {int(same.sum())} of {len(same)} "
        "networks with relatives have one of them as nearest neighbour",
        {"adjusted_rand": found.value, "p": found.p, "nearest": same.sum(), "networks": len(same)},
    )


def tree_agreement(near: Distances, groups: Mapping[str, str]) -> Chance:
    """Compute the adjusted Rand index of groups and the tree, cut into as many clusters; 0 by chance."""
    names = list(near.names)
    labels = [groups[name] for name in names]
    cut = cluster(near).cut(len(set(labels)))[names].to_list()
    return label_chance(labels, lambda order: adjusted_rand(order, cut))


def own_clusters(census: Census) -> Answer:
    """Check whether every family is one cluster of the tree."""
    kept = census.only(census.families)
    merges = cluster(distances(kept.soundings)).merges
    members = {family: frozenset(kept.members(family)) for family in dict.fromkeys(kept.families.values())}
    wanted = {family: of for family, of in members.items() if len(of) > 1}
    whole = [family for family, of in wanted.items() if of in merges]
    broken = [family for family in wanted if family not in whole]
    words = f"{len(whole)} of {len(wanted)} families are" + (f"; not {listed(broken)}" if broken else "")
    return Answer(not broken, words, {"whole": len(whole), "families": len(wanted)})


def swin_neighbours(census: Census) -> Answer:
    """Find the family that is nearest to the Swins."""
    frame = distances(census.only(census.families).soundings).frame
    swins = census.members("Swin")
    others = [name for name in frame.columns if name not in swins]
    mean = frame.loc[swins, others].mean().groupby(pd.Series(census.families)).mean().sort_values()
    nearest = str(mean.index[0])
    words = ", ".join(f"{family} {value:.2f}" for family, value in mean.head(4).items())
    early = {family.casefold() for family in EARLY}
    numbers = {str(family): float(value) for family, value in mean.items()}
    return Answer(nearest.casefold() in early, f"mean DTW distance from Swins: {words}", numbers)


def _merges(tree: Clustering) -> pd.DataFrame:
    rows = zip(tree.linkage[:, 2], tree.merges, strict=True)
    return pd.DataFrame([{"height": height, "networks": " ".join(sorted(of))} for height, of in rows])


FIGURE_5A = network_item(
    name="affinity-figure-5a",
    title="Figure 5 (A): hierarchical clustering of all networks by their signatures",
    claims={
        "families": Claim(
            "Hierarchical clustering reveals meaningful clusters with close architectural characteristics.",
            "The tree (DTW, average linkage; the paper does not name its own), cut into as many clusters "
            f"as there are families, has an adjusted Rand index above 0 with p < {LEVEL} over 1000 orders "
            "of the families.",
        ),
        "all": Claim(
            "All similar models are correctly clustered together within their respective families.",
            "Every family of two networks or more is a cluster of the tree: its members meet before any "
            "other network joins them.",
        ),
        "across": Claim(
            "Similar models are also clustered across families, such as Swin and pure convolution models.",
            "Of all other families AlexNet or VGG has the least mean DTW distance from the Swins.",
        ),
    },
    run=run,
)
