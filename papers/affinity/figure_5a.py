"""Figure 5 (A): does a tree of signatures find the families?"""

from __future__ import annotations

import pandas as pd

from fathometer.compare import cluster, family_agreement
from fathometer.report import plot_dendrogram
from papers.affinity.census import EARLY, SEVERAL, SWIN, Census, network_item
from papers.affinity.predicates import AGREEMENT, finds_families, need_relatives
from papers.item import Claim, Numbers, RunContext


def draw(context: RunContext, census: Census) -> None:
    """Draw the tree of all networks."""
    context.table("neighbours", family_agreement(census.distances, census.families))
    context.figure(plot_dendrogram(cluster(census.distances), census.families))


def own_clusters(census: Census) -> Numbers:
    """Find the families that are one cluster of the tree."""
    members = need_relatives(census)
    merges = cluster(census.distances).merges
    whole = [family for family, names in members.items() if frozenset(names) in merges]
    return {"whole": len(whole), "families": len(members), "named": ", ".join(whole) or "none"}


def swin_neighbours(census: Census) -> Numbers:
    """Find the family that is nearest to the Swins."""
    census.group(EARLY)
    swins = census.group(SWIN)
    others = census.distances.frame.loc[swins].drop(columns=swins).mean()
    mean = others.groupby(pd.Series(census.families)).mean().sort_values()
    named = ", ".join(f"{family} {value:.2f}" for family, value in mean.items())
    return {"nearest": str(mean.index[0]), "named": named}


FIGURE_5A = network_item(
    "affinity-figure-5a",
    "Figure 5 (A): hierarchical clustering of all networks by their signatures",
    draw,
    {
        "families": finds_families(
            "Hierarchical clustering reveals meaningful clusters with close architectural characteristics.",
            "The tree (the paper's DTW; average linkage, as the paper does not name its own), cut into as "
            "many clusters as there are families, agrees with them by the adjusted Rand index",
            AGREEMENT,
            "adjusted Rand index {value:.2f}",
        ),
        "whole": Claim(
            words="All similar models are correctly clustered together within their respective families.",
            test="Every family of two networks or more (at least two) is a cluster of the tree: its members "
            "meet before any other network joins them.",
            measure=own_clusters,
            holds=lambda n: n["whole"] == n["families"],
            says="{whole:.0f} of {families:.0f} families: {named}",
        ),
        "across": Claim(
            words="Similar models are also clustered across families, such as Swin and pure convolution "
            "models.",
            test="Of all other families AlexNet or VGG has the least mean DTW distance from the Swins (at "
            f"least {SEVERAL}).",
            measure=swin_neighbours,
            holds=lambda n: n["nearest"] in EARLY.members,
            says="mean DTW distance from Swins: {named}",
        ),
    },
    also=("families", "whole"),
)
